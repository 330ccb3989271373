# tidemark_source_files(<result> <pattern>…): files of the repository, relative to ROOT, that match
# the patterns in any folder that people write. Build folders are never searched.
function(tidemark_source_files result)
  set(found)
  foreach(pattern IN LISTS ARGN)
    file(GLOB paths RELATIVE ${ROOT} ${ROOT}/${pattern})
    list(APPEND found ${paths})
    foreach(folder IN ITEMS base traces simulator importers analysis kernels profiler recorder gui cli tests bench docs
                            examples cmake scripts .ci)
      file(GLOB_RECURSE paths RELATIVE ${ROOT} ${ROOT}/${folder}/${pattern})
      list(APPEND found ${paths})
    endforeach()
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()
