/* In the fuzzer's place: each file that is named is tried once. */
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int try_file(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "rb");

    if (file == NULL) {
        perror(path);
        return 1;
    }
    size_t size = fread(data, 1, sizeof(data), file);
    fclose(file);
    printf("%s: %zu bytes\n", path, size);
    return LLVMFuzzerTestOneInput(data, size);
}

int main(int argc, char **argv)
{
    int bad = argc < 2;

    for (int i = 1; i < argc; i++) {
        bad |= try_file(argv[i]);
    }
    return bad;
}
