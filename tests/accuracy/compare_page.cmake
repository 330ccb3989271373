# Fails unless docs/accuracy.md is what the program writes now.
execute_process(
  COMMAND ${PROGRAM} ${SOURCE}/tests/reference ${SOURCE}/tests/golden/allocator
  OUTPUT_VARIABLE now COMMAND_ERROR_IS_FATAL ANY)
file(READ ${SOURCE}/docs/accuracy.md committed)
if(NOT now STREQUAL committed)
  message(FATAL_ERROR "docs/accuracy.md is out of date: run scripts/regenerate_accuracy.sh and "
                      "review the change")
endif()
