# gpuwait: `make` builds build/gpuwait and build/libgpuwait.so; `make help` lists the rest.
VERSION := 0.1.0
B       := build
PREFIX  ?= /usr/local

CC      ?= cc
WERROR  ?=
SAN     ?=
OPT     ?= -O2 -g
CFLAGS_ := -std=gnu11 $(OPT) -Wall -Wextra $(WERROR) $(SAN) -Iinclude -Ilib -MMD -MP \
           -D_GNU_SOURCE -DGPUWAIT_VERSION='"$(VERSION)"' -fno-strict-aliasing
SMARTCOLS_CFLAGS ?= -I/usr/include/libsmartcols
LDLIBS_ := -lzstd -ljansson -lsmartcols -liberty -lm -ldl -pthread

.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := all

ifneq ($(V),1)
.SILENT:
say  = @printf '  %-6s %s\n' $(1) $(patsubst $(CURDIR)/%,%,$(2))
endif

# ---- sources ----------------------------------------------------------------
trace_src    := $(wildcard lib/trace/*.c)
analysis_src := $(wildcard lib/analysis/*.c)
tools_src    := $(wildcard tools/*.c)
capture_src  := $(wildcard lib/capture/*.c lib/capture/*.S) \
                $(wildcard $(addprefix lib/trace/,codec.c writer.c file.c bound.c aggregate.c))
unit_src     := $(wildcard tests/unit/test_*.c)
bench_src    := $(wildcard tests/bench/*.c)
fuzz_src     := $(wildcard tests/fuzz/fuzz_*.c)

obj = $(patsubst %,$(B)/obj/%.o,$(basename $(1)))
pic = $(patsubst %,$(B)/pic/%.o,$(basename $(1)))

libs    := $(B)/libgpuwait-trace.a $(B)/libgpuwait-analysis.a
preload := $(B)/libgpuwait.so
unit    := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(unit_src))
bench   := $(patsubst tests/bench/%.c,$(B)/bench/%,$(bench_src))
fuzz    := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(fuzz_src))

# ---- building ---------------------------------------------------------------
all: $(B)/gpuwait $(preload) $(B)/libgpuwait-trace.a ## the CLI and the preload, under build/

# The CLI is compiled as a whole where the compiler and the linker can; the libraries, which other
# compilers may read, file by file.
whole := $(if $(SAN),,$(shell echo 'int main(void) { return 0; }' | \
             $(CC) -Werror -flto=auto -x c - -o /dev/null 2>/dev/null && echo -flto=auto))

# Another compiler or other flags rebuild what they built.
flags_now := $(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS) $(whole)
$(B)/flags: FORCE
	@mkdir -p $(B) && printf '%s\n' '$(subst ','\'',$(flags_now))' | cmp -s - $@ || \
	printf '%s\n' '$(subst ','\'',$(flags_now))' > $@

cli = $(if $(whole),$(patsubst %,$(B)/cli/%.o,$(basename $(1))),$(call obj,$(1)))

$(B)/obj/tools/%.o $(B)/cli/tools/%.o: CFLAGS_ += $(SMARTCOLS_CFLAGS)
$(B)/cli/%.o: %.c $(B)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_) $(CFLAGS) $(whole) -c $< -o $@

$(B)/obj/%.o: %.c $(B)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_) $(CFLAGS) -c $< -o $@

# The preload lives in somebody else's process: hidden symbols, thread-local words at a
# fixed offset, old glibc versions (glibc_compat.h), never a sanitizer.
pic_cflags := $(filter-out $(SAN),$(CFLAGS_))
pic_flags  := -fPIC -fvisibility=hidden -fno-semantic-interposition -ftls-model=initial-exec \
              -fasynchronous-unwind-tables -fno-lto

# Wrappers: a jump to another function would copy the arguments onto themselves, structures
# stored in vectors are slow to read in parts, and arguments fetched ahead of where they are
# needed take registers that then have to be saved.
wrap_flags := -fno-optimize-sibling-calls -fno-tree-slp-vectorize \
    $(foreach f,-fno-gcse -fno-code-hoisting -fno-tree-pre,$(shell \
        $(CC) -Werror $f -x c -c /dev/null -o /dev/null 2>/dev/null && echo ' $f'))
$(B)/pic/lib/capture/wrap_%.o: pic_flags += $(wrap_flags)

$(B)/pic/%.o: %.c $(B)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(CC) $(pic_cflags) $(filter-out -fsanitize=%,$(CFLAGS)) $(pic_flags) \
	    -include lib/capture/glibc_compat.h -c $< -o $@

$(B)/pic/%.o: %.S $(B)/flags
	$(call say,AS,$@)
	@mkdir -p $(@D)
	$(CC) $(pic_cflags) $(filter-out -fsanitize=%,$(CFLAGS)) $(pic_flags) -c $< -o $@

$(preload): $(call pic,$(capture_src)) $(wildcard lib/capture/exports.map)
	$(call say,LINK,$@)
	$(CC) -shared $(filter-out -fsanitize=%,$(CFLAGS) $(LDFLAGS)) -fno-lto -static-libgcc \
	    -Wl,-soname,libgpuwait.so -Wl,-z,relro -Wl,-z,defs -Wl,-Bsymbolic -Wl,--exclude-libs,ALL \
	    $(patsubst %,-Wl$(comma)--version-script=%,$(filter %.map,$^)) $(filter %.o,$^) \
	    -l:libzstd.a -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -o $@
comma := ,

$(B)/libgpuwait-trace.a: $(call obj,$(trace_src))
$(B)/libgpuwait-analysis.a: $(call obj,$(analysis_src))
$(libs):
	$(call say,AR,$@)
	@mkdir -p $(@D) && rm -f $@
	$(AR) rcsD $@ $^

# analysis uses trace, so it is named first.
link = $(CC) $(SAN) $(CFLAGS) $(LDFLAGS) $(filter %.o,$^) \
       $(B)/libgpuwait-analysis.a $(B)/libgpuwait-trace.a $(LDLIBS_)

$(B)/gpuwait: $(call cli,$(tools_src) $(analysis_src) $(trace_src))
	$(call say,LINK,$@)
	$(CC) $(OPT) $(whole) $(SAN) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS_) -o $@

# Prints through the report's own code.
render_src := $(wildcard tools/render*.c) tools/table.c tools/text.c tools/tool.c
samples    := $(patsubst %,$(B)/tests/unit/%,render_sample check_sample)
$(samples): $(B)/tests/unit/%: $(B)/obj/tests/unit/%.o $(call obj,$(render_src)) $(libs)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(link) $(LDLIBS) -o $@

$(B)/tests/unit/%: $(B)/obj/tests/unit/%.o $(libs)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(link) $(LDLIBS) -lcmocka -o $@

# Built as a user of the library would: the example, and what makes recordings of recordings.
fixture := $(patsubst tests/fixtures/%.c,$(B)/%,$(wildcard tests/fixtures/*.c))
$(B)/tests/unit/example $(fixture): LINKED = $(B)/libgpuwait-trace.a -lzstd
$(B)/tests/unit/example: $(B)/obj/tests/unit/example.o
$(fixture): $(B)/%: $(B)/obj/tests/fixtures/%.o
$(B)/tests/unit/example $(fixture): $(B)/libgpuwait-trace.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(CC) $(SAN) $(CFLAGS) $(LDFLAGS) $(filter %.o,$^) $(LINKED) -o $@

$(B)/bench/%: $(B)/obj/tests/bench/%.o $(libs)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(link) $(LDLIBS) -o $@

# ---- simulated CUDA ---------------------------------------------------------
sim: ## the simulated CUDA libraries and their clients
-include tests/sim/sim.mk
-include tests/bench/noop/noop.mk
-include tests/crash/crash.mk

# ---- running ----------------------------------------------------------------
demo: all sim ## record a small training job and report it (simulated GPU where there is none)
	B='$(abspath $(B))' sh tests/demo.sh

unit: $(unit) $(patsubst tests/unit/%.c,$(B)/tests/unit/%, \
          $(wildcard tests/unit/example.c tests/unit/*_sample.c)) \
      $(fixture)
tests: all sim noop crash unit $(bench)

test: tests ## all tests; T=WORD runs those whose name contains WORD
	B='$(B)' sh tests/run.sh $(T)

sim-timeline: all sim ## the timeline's accuracy over 200 simulated programs, as it is asked for
	set -e; export B='$(abspath $(B))'; rc=0; for run in '' --double '--clock real --seeds 1:20'; do \
	    echo "timeline $$run"; \
	    python3 tests/sim/timeline.py --quiet --seeds 1:200 $$run || rc=1; \
	done; exit $$rc

sim-ranks: all sim unit ## reports over 64 and 256 simulated ranks, and what one of 256 x 1 M events costs
	set -e; export B='$(abspath $(B))'; rc=0; \
	sh tests/sim/ranks_jobs.sh 64 150 || rc=1; \
	sh tests/sim/ranks_jobs.sh 256 100 data gc gpu link || rc=1; \
	sh tests/sim/ranks_scale.sh || rc=1; exit $$rc

gpu-test: all ## the tests that need a GPU and PyTorch
	B='$(abspath $(B))' GPUWAIT='$(abspath $(B))/gpuwait' \
	    LIBGPUWAIT='$(abspath $(preload))' sh tests/gpu/run_all.sh

bench: all sim noop $(bench) ## costs: a call, an event, a report; T=WORD runs those with WORD in their name
	B='$(abspath $(B))' GPUWAIT='$(abspath $(B))/gpuwait' LIBGPUWAIT='$(abspath $(preload))' \
	    sh tests/bench/run.sh $(T)

bench-renew: all tests ## what a call and an event cost now becomes what tests compare with
	B='$(abspath $(B))' python3 tests/unit/test_costs.py --renew

EXITS ?= 200
python-exits: all sim ## EXITS (200) ends of Python while stacks are taken; PYTHON=python3.13 ...
	B='$(abspath $(B))' EXITS=$(EXITS) python3 tests/e2e/28-python-exits.py

KILLS ?= 1000
kills: all crash ## KILLS (1000) ends by SIGKILL, fewer by SIGSEGV and the OOM killer; what is read back
	B='$(abspath $(B))' KILLS=$(KILLS) sh tests/crash/kills.sh

failures: all sim crash ## each system call of the library's fails, the first ones, the last, all
	export B='$(abspath $(B))' FAILURES=all; rc=0; for p in threads demo_qlora victim; do \
	    echo "failures in $$p"; PROGRAM=$$p python3 tests/crash/20-failures.py || rc=1; done; exit $$rc

TSAN_B = $(B)/tsan
tsan: all sim noop crash-tsan ## ThreadSanitizer over the recorder, and over reports and tests with threads
	$(MAKE) B='$(TSAN_B)' SAN='-fsanitize=thread -Wno-tsan' OPT='-O1 -g' all unit
	B='$(abspath $(B))' TSAN='$(abspath $(TSAN_B))' sh tests/crash/tsan.sh

valgrind: all sim noop crash unit ## memcheck over unit programs, reports and the recorder; some ten minutes
	B='$(abspath $(B))' sh tests/crash/valgrind.sh

SOAK_SECONDS ?= 3600
soak: all sim crash ## a busy job for SOAK_SECONDS (3600): nothing grows, nothing is lost
	B='$(abspath $(B))' SOAK_SECONDS=$(SOAK_SECONDS) python3 tests/crash/soak.py

protocol: unit ## every order of accesses to ring and dump, with more events than `make test`
	PROTOCOL=full $(B)/tests/unit/test_protocol

fresh-check: ## README's two commands in a bare Debian 12 (needs root, debootstrap, network)
	sh tests/e2e/chroot.sh

# libFuzzer needs clang; each target is one program with the libraries compiled in, and the others'
# linked into it as far as they can be: where it runs, nothing else need be there.
FUZZ_CC      ?= clang
FUZZ_SECONDS ?= 60
FUZZ_LIBS    := -Wl,--as-needed -static-libgcc -static-libstdc++ \
                $(patsubst %,-l:lib%.a,zstd jansson iberty) -lsmartcols -lm -ldl -pthread
fuzz_flags    = $(filter-out $(SAN),$(CFLAGS_)) -fno-sanitize-recover=undefined
fuzz_obj      = $(patsubst %,$(B)/fuzz/$(1)/%.o,$(basename $(2)))
fuzz_libs    := $(trace_src) $(analysis_src)
fuzz_plain   := $(addprefix $(B)/fuzz/fuzz_,analysis job)
# Two of them mutate records themselves: what values are compared with would be noted for nobody.
$(B)/fuzz/plain/%.o: fuzz_flags += -fno-sanitize-coverage=trace-cmp
$(B)/fuzz/obj/%.o $(B)/fuzz/plain/%.o: fuzz_flags += -fsanitize=fuzzer-no-link,address,undefined
$(B)/fuzz/obj/tools/%.o: fuzz_flags += $(SMARTCOLS_CFLAGS)
define fuzz_cc
$(call say,CC,$@)
@mkdir -p $(@D)
$(FUZZ_CC) $(fuzz_flags) -c $< -o $@
endef
$(B)/fuzz/obj/%.o: %.c $(B)/flags
	$(fuzz_cc)
$(B)/fuzz/plain/%.o: %.c $(B)/flags
	$(fuzz_cc)
$(fuzz_plain): $(call fuzz_obj,plain,$(fuzz_libs))
$(fuzz_plain): private fuzz_flags += -fno-sanitize-coverage=trace-cmp
$(filter-out $(fuzz_plain),$(fuzz)): $(call fuzz_obj,obj,$(fuzz_libs))
$(B)/fuzz/fuzz_cli: $(call fuzz_obj,obj,$(filter-out tools/main.c tools/cmd_run.c,$(tools_src)))
$(B)/fuzz/fuzz_cli: private fuzz_flags += -I. $(SMARTCOLS_CFLAGS)
$(B)/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(wildcard tests/fuzz/*.h)
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(filter-out -MMD -MP,$(fuzz_flags)) -fsanitize=fuzzer,address,undefined \
	    $(filter %.c %.o,$^) $(FUZZ_LIBS) -o $@

$(B)/fuzz/pack: tests/fuzz/pack.c $(B)/libgpuwait-trace.a $(B)/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_)) $(filter %.c %.a,$^) -lzstd -lm -o $@

fuzz-build: $(fuzz) $(B)/fuzz/pack

fuzz: fuzz-build ## fuzz every parser, FUZZ_JOBS at once, FUZZ_SECONDS (60) each; 0 replays the corpus
	B='$(B)' FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_JOBS=$(FUZZ_JOBS) python3 tests/fuzz/fuzz.py

lint: ## formatting, scripts, man pages, stray paths
	sh tests/lint.sh

# ---- installing -------------------------------------------------------------
INSTALL ?= install
install: all ## into PREFIX (/usr/local), under DESTDIR
	$(INSTALL) -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/lib/gpuwait' \
	    '$(DESTDIR)$(PREFIX)/include/gpuwait' '$(DESTDIR)$(PREFIX)/share/man/man1' \
	    '$(DESTDIR)$(PREFIX)/share/man/man5' '$(DESTDIR)$(PREFIX)/share/man/man7'
	$(INSTALL) -m 755 $(B)/gpuwait '$(DESTDIR)$(PREFIX)/bin/gpuwait'
	$(INSTALL) -m 644 $(preload) '$(DESTDIR)$(PREFIX)/lib/gpuwait/libgpuwait.so'
	$(INSTALL) -m 644 $(B)/libgpuwait-trace.a '$(DESTDIR)$(PREFIX)/lib/libgpuwait-trace.a'
	$(INSTALL) -m 644 include/gpuwait/*.h '$(DESTDIR)$(PREFIX)/include/gpuwait/'
	for s in 1 5 7; do \
	    for m in tools/man/*.$$s; do \
	        $(INSTALL) -m 644 "$$m" '$(DESTDIR)$(PREFIX)/share/man/man'$$s/ || exit 1; \
	    done; \
	done

clean: ## remove build/
	rm -rf $(B)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@echo '  variables: V=1 (show commands), B=DIR (instead of build), CC, CFLAGS, LDFLAGS,'
	@echo '             WERROR=-Werror, SAN=-fsanitize=address,undefined, PREFIX, DESTDIR'

FORCE:

.PHONY: all sim sim-timeline sim-ranks demo unit tests test gpu-test bench bench-renew python-exits \
        kills failures tsan valgrind soak protocol fresh-check fuzz-build fuzz lint install clean help FORCE

-include $(shell find $(B) -name '*.d' 2>/dev/null)
