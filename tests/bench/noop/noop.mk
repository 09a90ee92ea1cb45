# A CUDA that does nothing, for measuring interception alone and for killing programs in it.
noop := $(B)/noop
noop_flags = $(CFLAGS_) $(CFLAGS) -Wno-unused-parameter

$(noop)/libcuda.so.1: tests/bench/noop/libcuda.c $(wildcard lib/capture/*.def) $(B)/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out $(SAN),$(noop_flags)) -MF $@.d -fPIC -shared -Wl,-soname,libcuda.so.1 $< -o $@ -ldl

$(noop)/libcudart.so.13: tests/bench/noop/libcudart.c tests/bench/noop/libcudart.map $(B)/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out $(SAN),$(noop_flags)) -MF $@.d -fPIC -fexceptions -shared -Wl,-soname,libcudart.so.13 \
	    -Wl,--version-script=tests/bench/noop/libcudart.map $< -o $@ -ldl

$(noop)/libc10.so: tests/bench/noop/libc10.c $(B)/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out $(SAN),$(noop_flags)) -MF $@.d -fPIC -shared -Wl,-soname,libc10.so $< -o $@

$(noop)/calls $(noop)/victim: $(noop)/%: tests/bench/noop/%.c $(noop)/libcuda.so.1 \
    $(noop)/libcudart.so.13 $(noop)/libc10.so
	$(call say,LINK,$@)
	$(Q)$(CC) $(filter-out $(SAN),$(noop_flags)) -MF $@.d $< -L$(noop) -Wl,--no-as-needed -l:libcuda.so.1 -l:libcudart.so.13 \
	    -l:libc10.so -Wl,-rpath,'$$ORIGIN' -pthread -o $@

.PHONY: noop
noop: $(noop)/calls $(noop)/victim
