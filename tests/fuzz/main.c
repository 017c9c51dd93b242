/* Runs a fuzz target without libFuzzer: once for each file given, as make check does with the seeds
 * and as one does to look at a crash. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An exact copy on the heap, so that the address sanitizer sees each read outside. -1: unreadable.
 */
static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t size = 0, n;
    uint8_t chunk[4096];

    if (!file) {
        perror(path);
        return -1;
    }
    while ((n = fread(chunk, 1, sizeof chunk, file)) > 0) {
        uint8_t *grown = realloc(data, size + n);
        if (!grown)
            abort();
        data = grown;
        for (size_t i = 0; i < n; i++)
            data[size++] = chunk[i];
    }
    int failed = ferror(file);
    fclose(file);
    if (failed)
        fprintf(stderr, "%s: cannot be read\n", path);
    else
        LLVMFuzzerTestOneInput(data, size);
    free(data);
    return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE...\n", argv[0]);
        return 2;
    }
    for (int i = 1; i < argc; i++)
        if (run_file(argv[i]) < 0)
            return 1;
    printf("%d inputs\n", argc - 1);
    return 0;
}
