# SPDX-License-Identifier: MIT
# Thin: everything is in CMake and scripts/. `make help` lists the targets.

PREFIX ?= /usr/local
BUILD  := build

all: ## build/softnd, build/libsoftnd.so and the helper libraries (release)
	@scripts/build.sh release

demo: ## move 1 GiB between two processes through NetworkDirect, and verify it
	@scripts/demo.sh

test: ## build the test configurations, run all tests, print the line coverage of src/
	@scripts/test.sh

interop: ## SoftND against Linux's siw, rping and Wireshark (docs/interop.md)
	@scripts/interop.sh

bench: ## measure beside TCP, libfabric and UCX (docs/bench.md); a few minutes on an idle machine
	@scripts/bench.sh

install: all ## into PREFIX (default /usr/local), below DESTDIR
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)"

package-windows: ## build/softnd-VERSION-windows-x64.zip, built with MinGW-w64
	@scripts/package-windows.sh

deps: ## install the packages that building needs (Debian)
	@scripts/deps.sh build

clean: ## remove everything that was built
	@rm -rf $(BUILD)

help:
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' Makefile

.PHONY: all demo test interop bench install package-windows deps clean help
