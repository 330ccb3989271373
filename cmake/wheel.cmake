# What the Python package holds beside its modules: the program, in tidemark/bin. pyproject.toml asks
# for the component `python`. With TIDEMARK_PREBUILT=<program> nothing is compiled: `make python` and
# the tests pack the one that is there.
set(TIDEMARK_PREBUILT "" CACHE FILEPATH "a program to pack instead of building one")
if(TIDEMARK_PREBUILT)
  if(NOT EXISTS ${TIDEMARK_PREBUILT})
    message(FATAL_ERROR "TIDEMARK_PREBUILT: there is no ${TIDEMARK_PREBUILT}")
  endif()
  add_custom_target(tidemark_alone)  # pyproject.toml names it
  install(PROGRAMS ${TIDEMARK_PREBUILT} DESTINATION bin RENAME tidemark COMPONENT python)
endif()
