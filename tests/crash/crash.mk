# Programs that die, and what makes them: part of the root Makefile.
crash := $(B)/crash
crash_flags = $(filter-out $(SAN),$(CFLAGS_) $(CFLAGS))

$(crash)/libfail.so $(crash)/libinterposer.so $(crash)/libnext.so $(crash)/libclocks.so $(crash)/liblate.so: $(crash)/lib%.so: tests/crash/%.c $(B)/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(CC) $(crash_flags) -MF $@.d -MT $@ -fPIC -shared $(LDFLAGS) $< -o $@ -ldl

$(crash)/count $(crash)/huge: $(crash)/%: $(B)/obj/tests/crash/%.o $(B)/libgpuwait-trace.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(CC) $(SAN) $(CFLAGS) $(LDFLAGS) $^ -lzstd -o $@

$(crash)/libnvtx.so: tests/crash/nvtx.c $(B)/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(CC) $(crash_flags) -DCONSUMER -MF $@.d -MT $@ -fPIC -shared $(LDFLAGS) $< -o $@

$(crash)/habits: $(crash)/liblate.so
$(crash)/habits: LINKED = -L$(crash) -l:liblate.so -Wl,-rpath,'$$ORIGIN'
$(crash)/processes $(crash)/habits $(crash)/nvtx: $(crash)/%: tests/crash/%.c $(noop)/libcuda.so.1 $(noop)/libcudart.so.13 $(B)/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(CC) $(crash_flags) -Itests -MF $@.d -MT $@ $(filter %.c,$^) -L$(noop) -Wl,--no-as-needed -l:libcuda.so.1 \
	    -l:libcudart.so.13 $(LINKED) $(LDFLAGS) '-Wl,-rpath,$$ORIGIN/../noop' -pthread -o $@

# Drivers and runtimes that are not like others, each in a folder with who uses it.
odd_libs   := $(patsubst %,$(crash)/odd/lib%,cuda.so.1 chain1.so chain2.so chain3.so)
nulls_libs := $(patsubst %,$(crash)/nulls/lib%,cudart.so.13 cuda.so.1 nccl.so.2)
$(crash)/odd/libcuda.so.1: tests/crash/odd_driver.c
$(filter-out %/libcuda.so.1,$(odd_libs)): tests/crash/chain.c
$(crash)/odd/libchain1.so: DEFINES = -DRANK=300
$(crash)/odd/libchain2.so: DEFINES = -DRANK=20
$(crash)/odd/libchain3.so: DEFINES = -DRANK=1
$(nulls_libs): tests/crash/nulls.c
$(crash)/nulls/libcudart.so.13: DEFINES = -DLEVEL=1
$(crash)/nulls/libcuda.so.1: DEFINES = -DLEVEL=2
$(crash)/nulls/libnccl.so.2: DEFINES = -DLEVEL=3
$(odd_libs) $(nulls_libs): $(B)/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(CC) $(crash_flags) $(DEFINES) -MF $@.d -MT $@ -fPIC -shared -Wl,-soname,$(@F) $(LDFLAGS) $(filter %.c,$^) -o $@ -ldl

$(crash)/odd/odd: tests/crash/odd.c $(odd_libs)
$(crash)/nulls/nulls: tests/crash/nulls.c $(nulls_libs)
$(crash)/odd/odd: LINKED = -l:libchain1.so -l:libchain2.so -rdynamic
$(crash)/nulls/nulls: LINKED = -l:libcudart.so.13 -l:libcuda.so.1 -l:libnccl.so.2
$(crash)/odd/odd $(crash)/nulls/nulls: $(B)/flags
	$(call say,LINK,$@)
	$(CC) $(crash_flags) -MF $@.d -MT $@ $(filter %.c,$^) -L$(@D) -Wl,--no-as-needed $(LINKED) $(LDFLAGS) \
	    '-Wl,-rpath,$$ORIGIN' -ldl -pthread -o $@

$(crash)/sandbox: tests/crash/sandbox.c $(B)/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(CC) $(crash_flags) -MF $@.d -MT $@ $< $(LDFLAGS) -o $@

# The preload itself under ThreadSanitizer, in a program under it; but for the resolver, which is
# called before the sanitizer has begun.
tsan_so := $(patsubst %,$(crash)/tsan/%.o,$(basename $(capture_src)))
tsan_flags = $(pic_cflags) $(CFLAGS) $(pic_flags) -O1 $(SAN_THREAD)
$(tsan_so): SAN_THREAD = -fsanitize=thread -Wno-tsan
$(crash)/tsan/lib/capture/resolve.o: SAN_THREAD =
$(crash)/tsan/lib/capture/wrap_%.o: pic_flags += $(wrap_flags)
$(crash)/tsan/%.o: %.c $(B)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(CC) $(tsan_flags) -include lib/capture/glibc_compat.h -c $< -o $@
$(crash)/tsan/%.o: %.S $(B)/flags
	$(call say,AS,$@)
	@mkdir -p $(@D)
	$(CC) $(tsan_flags) -c $< -o $@
$(crash)/tsan/libgpuwait.so: $(tsan_so) lib/capture/exports.map
	$(call say,LINK,$@)
	$(CC) -shared -fsanitize=thread -Wl,-soname,libgpuwait.so -Wl,-Bsymbolic \
	    -Wl,--exclude-libs,ALL -Wl,--version-script=lib/capture/exports.map $(tsan_so) \
	    -l:libzstd.a -ldl -lpthread -o $@
$(crash)/tsan/processes $(crash)/tsan/victim: $(crash)/tsan/%: $(noop)/libcuda.so.1 $(noop)/libcudart.so.13
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(CC) $(crash_flags) -MF $@.d -MT $@ -fsanitize=thread $(filter %.c,$^) -L$(noop) \
	    -Wl,--no-as-needed -l:libcuda.so.1 -l:libcudart.so.13 $(LDFLAGS) \
	    '-Wl,-rpath,$$ORIGIN/../../noop' -pthread -o $@
$(crash)/tsan/processes: tests/crash/processes.c
$(crash)/tsan/victim: tests/bench/noop/victim.c

.PHONY: crash crash-tsan
crash-tsan: $(patsubst %,$(crash)/tsan/%,libgpuwait.so processes victim) crash
crash: $(crash)/libfail.so $(crash)/libinterposer.so $(crash)/libnext.so $(crash)/libclocks.so $(crash)/libnvtx.so $(crash)/nvtx $(crash)/sandbox $(crash)/count $(crash)/huge \
    $(crash)/processes $(crash)/habits $(crash)/odd/odd $(crash)/nulls/nulls noop
