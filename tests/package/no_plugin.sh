#!/usr/bin/env bash
# The packed program brings its own C++ library, so it takes no plugin that uses the machine's: one
# line instead of an exception that nobody can catch.
#   no_plugin.sh PROGRAM FAKE_LIBRARIES FOLDER      (a FOLDER that is made anew)
set -euo pipefail
program=$1 fakes=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
cp "$fakes/fake_cupti.so" "$folder/libcuda.so.1"  # any library: there seems to be a driver

ended=0
said=$(LD_LIBRARY_PATH=$folder TIDEMARK_CUDA_PLUGIN=$fakes/fake_plugin_without_gpu.so \
  "$program" replay vit-ti-16 --batch 1 --backend cuda 2>&1) || ended=$?
echo "$said"
(( ended == 5 )) && [[ $said == *"takes no CUDA plugin"*"make build"* ]]
