# The simulated CUDA: libraries and clients under $(B)/sim. Part of the root Makefile; alone:
#
#     make -f tests/sim/sim.mk sim
#
# run from the project's root. Needs a C compiler, binutils and glibc, nothing else.
# SIM_SAN=-fsanitize=... builds the simulation itself with sanitizers (they are left out
# otherwise, as for any vendor's library).
B  ?= build
CC ?= cc
ifndef CFLAGS_
CFLAGS_ := -std=gnu11 -O2 -g -Wall -Wextra $(WERROR) -Iinclude -Ilib -MMD -MP -D_GNU_SOURCE \
           -fno-strict-aliasing
endif

SIM       := $(B)/sim
SIM_O     := $(SIM)/o
SIM_SAN   ?=
sim_flags := $(filter-out $(SAN),$(CFLAGS_)) $(CFLAGS) $(SIM_SAN) -Itests/sim -fno-omit-frame-pointer
SIM_CC     = $(CC) $(sim_flags) -fPIC -fvisibility=hidden
# Bsymbolic, as the real libraries are: they call themselves, whatever is preloaded.
SIM_LD     = $(CC) $(SIM_SAN) $(LDFLAGS) -shared -Wl,-Bsymbolic -Wl,--as-needed
SIM_ORIGIN := -Wl,--enable-new-dtags '-Wl,-rpath,$$ORIGIN'

SIM_DRIVER := config device host truth truth_peers stream capture graph graph_nodes memory \
              memory_pools module launch peers copy device_calls stream_calls driver resolve
SIM_CUDART := cudart cudart_init cudart_calls cudart_copy cudart_graph
SIM_LIBS   := libcuda.so.1 libcudart.so.13 libcudart.so.12 libcudart.so.11.0 \
              libcudart_sim_static.a libnccl.so.2 libc10.so libc10_cuda.so libblas_sim.so \
              libpart_12.so libpart_13.so old/libcuda.so.1 libhost_sim.so

# Another compiler or other flags rebuild what they built.
$(SIM)/flags: SIM_FORCE
	@mkdir -p $(@D) && printf '%s\n' '$(subst ','\'',$(CC) $(sim_flags))' | cmp -s - $@ || \
	    printf '%s\n' '$(subst ','\'',$(CC) $(sim_flags))' > $@
SIM_FORCE:

$(SIM_O)/%.o: tests/sim/%.c $(SIM)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(SIM_CC) -c $< -o $@

# ---- the driver ---------------------------------------------------------------
$(SIM)/libcuda.so.1: $(SIM_DRIVER:%=$(SIM_O)/%.o)
	$(call say,LINK,$@)
	$(SIM_LD) -Wl,-soname,libcuda.so.1 $^ -o $@ -lpthread -ldl

# One of before 12.3: without the names that came later.
$(SIM)/old/exports.map: tests/sim/symbols.def
	@mkdir -p $(@D)
	@{ echo '{ global: cu*; sim_*; local:'; \
	   awk -F'[(, )]+' '$$1 == "SYMBOL" && $$4 > 12020 { print "    " $$3 ";" }' $<; \
	   echo '    *; };'; } > $@
$(SIM)/old/libcuda.so.1: $(SIM_DRIVER:%=$(SIM_O)/%.o) $(SIM)/old/exports.map
	$(call say,LINK,$@)
	$(SIM_LD) -Wl,-soname,libcuda.so.1 -Wl,--version-script,$(SIM)/old/exports.map \
	    $(filter %.o,$^) -o $@ -lpthread -ldl

# ---- runtimes -------------------------------------------------------------------
# One per version of the ABI: objects in a directory of their own, names left out by version,
# the version node on every symbol.
sim_number_13   := 13000
sim_number_12   := 12080
sim_number_11.0 := 11080
define sim_cudart
$(SIM_O)/cudart-$(1)/%.o: tests/sim/%.c $(SIM)/flags
	$$(call say,CC,$$@)
	@mkdir -p $$(@D)
	$$(SIM_CC) -DSIM_CUDART=$(sim_number_$(1)) -c $$< -o $$@
$(SIM)/libcudart.so.$(1): $(SIM_CUDART:%=$(SIM_O)/cudart-$(1)/%.o) tests/sim/cudart-$(1).map
	$$(call say,LINK,$$@)
	$$(SIM_LD) -Wl,-soname,libcudart.so.$(1) -Wl,--version-script,tests/sim/cudart-$(1).map \
	    $$(SIM_ORIGIN) $$(filter %.o,$$^) -o $$@ -lpthread -ldl
endef
$(foreach v,13 12 11.0,$(eval $(call sim_cudart,$(v))))

# The copy that goes into other libraries. One object: bodies override weak ones, for which
# an archive's members would not be fetched.
$(SIM_O)/cudart-static/%.o: tests/sim/%.c $(SIM)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(SIM_CC) -DSIM_CUDART=13000 -DSIM_CUDART_STATIC -c $< -o $@
$(SIM)/libcudart_sim_static.a: $(SIM_CUDART:%=$(SIM_O)/cudart-static/%.o)
	$(call say,AR,$@)
	$(LD) -r $^ -o $(SIM_O)/cudart-static/all.o
	rm -f $@ && $(AR) rcs $@ $(SIM_O)/cudart-static/all.o

# ---- libraries above the runtime ---------------------------------------------------
$(SIM)/libc10.so: $(SIM_O)/c10.o
	$(call say,LINK,$@)
	$(SIM_LD) -Wl,-soname,libc10.so $^ -o $@ -ldl
# not Bsymbolic, like PyTorch's own libraries
$(SIM)/libc10_cuda.so: $(SIM_O)/c10_cuda.o $(SIM)/libc10.so $(SIM)/libcudart.so.13
	$(call say,LINK,$@)
	$(CC) $(SIM_SAN) $(LDFLAGS) -shared -Wl,-soname,libc10_cuda.so $(SIM_ORIGIN) $^ -o $@ -lpthread
$(SIM)/libblas_sim.so: $(SIM_O)/blas.o $(SIM)/libcudart_sim_static.a
	$(call say,LINK,$@)
	$(SIM_LD) -Wl,-soname,libblas_sim.so -Wl,--exclude-libs,ALL $(SIM_ORIGIN) $^ -o $@ \
	    -lpthread -ldl
# nor is NCCL
$(SIM)/libnccl.so.2: $(SIM_O)/nccl.o $(SIM_O)/nccl_entry.o $(SIM)/libcudart_sim_static.a
	$(call say,LINK,$@)
	$(CC) $(SIM_SAN) $(LDFLAGS) -shared -Wl,-soname,libnccl.so.2 -Wl,--exclude-libs,ALL \
	    $(SIM_ORIGIN) $^ -o $@ -lpthread -ldl

# other names for this machine
$(SIM)/libhost_sim.so: $(SIM_O)/host_name.o $(SIM_O)/config.o
	$(call say,LINK,$@)
	$(SIM_LD) $^ -o $@

# The two halves of a program with two runtimes.
sim_part_12 := -DPART=12 -DSIM_CUDART=12080
sim_part_13 := -DPART=13 -DSIM_CUDART=13000
$(SIM)/libpart_%.so: tests/sim/clients/part.c $(SIM)/libcudart.so.% $(SIM)/flags
	$(call say,LINK,$@)
	$(SIM_CC) -Itests/sim/clients $(sim_part_$*) $(LDFLAGS) -shared -Wl,-soname,libpart_$*.so \
	    $(SIM_ORIGIN) -MF $@.d -MT $@ $< $(SIM)/libcudart.so.$* -o $@ -ldl

# ---- clients -------------------------------------------------------------------------
# One program a file. What each is linked to decides how it reaches the driver.
SIM_CLIENT = $(CC) $(sim_flags) $(LDFLAGS) -Itests/sim/clients -Wl,--enable-new-dtags \
             -Wl,-rpath-link,$(SIM) -Wl,--as-needed
SIM_HERE   := '-Wl,-rpath,$$ORIGIN/..'
sim_client_rt13        := libcudart.so.13
sim_client_rt12        := libcudart.so.12
sim_client_rt11        := libcudart.so.11.0
sim_client_graphs      := libcudart.so.13
sim_client_graphs11    := libcudart.so.11.0
sim_client_cublas_like := # dlopens libblas_sim.so
sim_client_triton_like := # dlopens the driver
sim_client_ptsz        := libcudart.so.13
sim_client_two_cudarts := libpart_12.so libpart_13.so
sim_client_local       := # dlopens libpart_13.so
sim_client_resolver    := # dlopens the driver
sim_client_nodriver    := # nothing at all, nor a path to find it
sim_client_threads     := libcudart.so.13
sim_client_unload      := # dlopens the driver
sim_client_shapes      := libcudart.so.13
sim_client_sections    := libcudart.so.13
sim_client_nccl        := libcudart.so.13 libnccl.so.2
sim_client_ranks       := libcudart.so.13 libnccl.so.2
sim_client_mesh        := libcudart.so.13 libnccl.so.2
sim_client_soak        := libcudart.so.13
sim_client_gated       := libcudart.so.13 libnccl.so.2
sim_client_random      := libcudart.so.13
sim_client_planted     := libcudart.so.13
sim_client_model       := # dlopens the driver
sim_client_demo_qlora  := libcudart.so.13 libc10_cuda.so libblas_sim.so
sim_client_loops       := libcudart.so.13
SIM_CLIENTS := $(patsubst sim_client_%,%,$(filter sim_client_%,$(.VARIABLES)))

# $(1) client, $(2) source, $(3) version of the runtime
define sim_client
$(SIM)/clients/$(1): tests/sim/clients/$(2).c $(sim_client_$(1):%=$(SIM)/%) $(SIM)/flags
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(SIM_CLIENT) -DSIM_CUDART=$(3) -MF $$@.d -MT $$@ tests/sim/clients/$(2).c \
	    $(sim_client_$(1):%=$(SIM)/%) $(if $(filter-out nodriver,$(1)),$$(SIM_HERE)) -o $$@ \
	    -lpthread -ldl -lm
endef
$(eval $(call sim_client,rt13,rt,13000))
$(eval $(call sim_client,rt12,rt,12080))
$(eval $(call sim_client,rt11,rt,11080))
$(eval $(call sim_client,graphs11,graphs,11080))
$(foreach c,$(filter-out rt1% graphs11,$(SIM_CLIENTS)),$(eval $(call sim_client,$(c),$(c),13000)))

.PHONY: sim SIM_FORCE
sim: $(SIM_LIBS:%=$(SIM)/%) $(SIM_CLIENTS:%=$(SIM)/clients/%)

-include $(wildcard $(SIM_O)/*.d $(SIM_O)/*/*.d $(SIM)/*.d $(SIM)/clients/*.d)
