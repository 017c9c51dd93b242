/* The main() of a fuzz harness without libFuzzer: feeds it files, once each. Arguments are files or
 * directories; without any it takes the seeds of the harness, $top_srcdir/tests/fuzz/seeds/NAME for
 * the program fuzz_NAME. A harness without seeds fails: it would test nothing. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replayed;

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        goto failed;

    size_t size = 0, cap = 0;
    uint8_t *data = NULL;
    do {
        cap = cap ? cap * 2 : 4096;
        uint8_t *grown = realloc(data, cap);
        if (!grown)
            abort();
        data = grown;
        size += fread(data + size, 1, cap - size, file);
    } while (size == cap);
    int bad = ferror(file);
    fclose(file);

    if (!bad) {
        /* A block of exactly the size: the sanitizer then sees a read behind the end. */
        uint8_t *exact = malloc(size ? size : 1);
        if (!exact)
            abort();
        memcpy(exact, data, size);
        printf("%s: %zu bytes\n", path, size);
        fflush(stdout);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
        replayed++;
    }
    free(data);
    if (!bad)
        return 0;
failed:
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return -1;
}

static int replay_path(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return errno == ENOTDIR ? replay_file(path) : (perror(path), -1);

    struct dirent *entry;
    int result = 0;
    while ((entry = readdir(dir)) && result == 0) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        result = replay_file(name);
    }
    closedir(dir);
    return result;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (replay_path(argv[i]))
            return EXIT_FAILURE;
    }
    if (argc == 1) {
        const char *top = getenv("top_srcdir");
        const char *name = strrchr(argv[0], '/');
        char path[4096];

        name = name ? name + 1 : argv[0];
        if (strncmp(name, "fuzz_", 5) == 0)
            name += 5;
        snprintf(path, sizeof(path), "%s/tests/fuzz/seeds/%s", top ? top : ".", name);
        if (replay_path(path))
            return EXIT_FAILURE;
    }
    printf("%d inputs\n", replayed);
    return replayed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
