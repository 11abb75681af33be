#include "choose/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ibshift_text_read(const char *path, size_t limit, const char *what, char **text, size_t *length,
                      char *error, size_t size)
{
    FILE *file = fopen(path, "rb");
    int rc = 0;

    if (file == NULL) {
        rc = -errno;
        snprintf(error, size, "%.100s: cannot open: %s", path, strerror(-rc));
        return rc;
    }
    *text = malloc(limit + 1);
    errno = 0;
    *length = *text != NULL ? fread(*text, 1, limit + 1, file) : 0;
    if (*text == NULL || ferror(file)) {
        rc = *text == NULL ? -ENOMEM : errno != 0 ? -errno : -EIO;
        snprintf(error, size, "%.100s: cannot read: %s", path, strerror(-rc));
    } else if (*length > limit) {
        rc = -EINVAL;
        snprintf(error, size, "%.100s: larger than %zu bytes: this is not a %s", path, limit, what);
    }
    if (rc != 0) {
        free(*text);
    }
    fclose(file);
    return rc;
}

/* How both begin is enough for names of which few begin alike. */
void ibshift_nearest_compare(struct ibshift_nearest *nearest, const char *name)
{
    size_t alike = 0;

    while (name[alike] != '\0' && name[alike] == nearest->word[alike]) {
        alike++;
    }
    nearest->is_known |= name[alike] == '\0' && nearest->word[alike] == '\0';
    if (nearest->name[0] == '\0' || alike > nearest->alike) {
        nearest->alike = alike;
        snprintf(nearest->name, sizeof(nearest->name), "%s", name);
    }
}
