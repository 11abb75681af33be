#include <stdlib.h>
#include <string.h>

#include "../softhca/fault/faultspec.c"
#include "../softhca/front/options.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Arguments of softhca-run, a line each: taken within the limits, or refused with one line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *argv[10] = {"softhca-run"}, *text = malloc(size + 1), *rest = NULL, said[4096] = "";
    FILE *real = stderr;
    struct options o;
    int argc = 1, command = -1, err;

    memcpy(text, data, size);
    text[size] = '\0';
    for (char *at = strtok_r(text, "\n", &rest); at && argc < 9; at = strtok_r(NULL, "\n", &rest)) {
        argv[argc++] = at;
    }
    stderr = fmemopen(said, sizeof(said) - 1, "w");
    err = options_parse(argc, argv, &o, &command);
    if (err == 0) {
        o.conf.hosts = o.conf.hosts ? o.conf.hosts : 1;
        err = options_faults(&o);
        if (command < 1 || command >= argc || o.conf.hosts > 8192 || o.conf.hcas > 8 ||
            o.conf.ports > 2 || o.conf.lmc > 7) {
            abort();
        }
    }
    fclose(stderr);
    stderr = real;
    if (err < 0 ? strchr(said, '\n') != said + strlen(said) - 1 : *said != '\0') {
        abort();
    }
    free(text);
    return 0;
}
