# The commands that people type; CMake does the work. JOBS=4 limits the compilers at work,
# CUDA_ARCHITECTURES=90 the devices that `make test` compiles CUDA code for.
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
FOLDERS = $(wildcard base traces simulator importers analysis kernels profiler recorder gui cli tests bench)
SOURCES = $(shell find $(FOLDERS) -name "*.h" -o -name "*.cpp" -o -name "*.cu" -o -name "*.cuh")

.PHONY: help build demo package python test test-all asan fuzz bench format tidy docs packages

help:  ## list these commands (the default)
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1 \t\2/p' Makefile | expand -t 18

build: packages  ## build the program: build/tidemark
	cmake --preset release
	cmake --build --preset release --target tidemark -j $(JOBS)

demo: build  ## build, then show the main job on two real models
	scripts/demo.sh

package: build  ## pack the program for other machines: build/packages/*.deb and *.tar.gz
	cmake --build --preset release --target tidemark_alone -j $(JOBS)
	cpack --config build/CPackConfig.cmake

python: packages  ## build the Python package and test its wheel in a fresh virtual environment
	cmake --preset release
	cmake --build --preset release --target tidemark_alone -j $(JOBS)
	tests/python/wheel.sh build/alone/tidemark build/wheels

test: packages  ## build everything and run the tests, but for those that are labelled slow
	cmake --preset release $(if $(CUDA_ARCHITECTURES),-DCMAKE_CUDA_ARCHITECTURES="$(CUDA_ARCHITECTURES)")
	cmake --build --preset release -j $(JOBS)
	ctest --preset release -j $(JOBS)

test-all: test  ## what `make test` leaves out, too: slow tests, and each header compiled alone
	cmake --build --preset release --target header_self_containment -j $(JOBS)
	ctest --preset all -L slow -j $(JOBS)

asan: packages  ## the tests under address and undefined-behaviour sanitizers
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan -j $(JOBS)

fuzz:  ## fuzz every reader for FUZZ_SECONDS (60) each; executions and covered lines
	scripts/install_packages.sh build fuzz
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS)
	scripts/run_fuzzers.sh build-fuzz $(FUZZ_SECONDS)

bench: packages  ## build and run the benchmarks
	cmake --preset release -DTIDEMARK_BENCH=ON
	cmake --build --preset release --target tidemark_bench tidemark_overlap_bench -j $(JOBS)
	build/bench/tidemark_bench
	build/bench/tidemark_overlap_bench

format:  ## rewrite the sources with clang-format
	clang-format -i $(SOURCES)

tidy:  ## check the sources with clang-tidy
	scripts/install_packages.sh build style
	cmake --preset clang
	cmake --build --preset clang -j $(JOBS)  # first: it generates headers that clang-tidy reads
	run-clang-tidy -quiet -p build-clang -j $(JOBS) '^(?!.*/(headers|CMakeFiles)/)'

docs: build  ## regenerate the command output shown in the documents
	@for script in scripts/regenerate_*; do \
	  if [ -x "$$script" ]; then echo "$$script"; "$$script" || exit 1; fi; done

packages:
	@scripts/install_packages.sh build
