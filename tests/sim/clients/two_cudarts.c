/* Two runtimes of different versions in one process, each used by a library of its own.
 *
 *     two_cudarts [ROUNDS]
 */
#define CLIENT_NO_RUNTIME
#include "client.h"

long part_12(long rounds);
long part_13(long rounds);

int main(int argc, char **argv)
{
    long rounds = argument(argc, argv, 1, 40);
    for (int i = 0; i < 3; i++) {
        if (part_12(rounds) != rounds || part_13(rounds) != rounds) {
            fprintf(stderr, "a call reached the other runtime\n");
            return 1;
        }
    }
    note((uint64_t)rounds * 3, "kernel:_Z7part_12Pfi");
    note((uint64_t)rounds * 3, "kernel:_Z7part_13Pfi");
    note((uint64_t)rounds * 3, "api:cudaLaunchKernel");
    note((uint64_t)rounds * 3, "api:__cudaLaunchKernel");
    note((uint64_t)rounds * 6, "api:cudaMemcpy");
    note((uint64_t)rounds * 6, "copies.H2D.calls");
    note((uint64_t)rounds * 6 * 512, "copies.H2D.bytes");
    note(6, "syncs");
    return finish("two_cudarts");
}
