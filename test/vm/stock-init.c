/* The first process of the stock kernel under QEMU: loads the modules of the initramfs in the order
 * of their names, takes the host's files over 9p as root and starts what "vm_init" names there (the
 * kernel hands on what its command line says as environment). */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

static void give_up(const char *what)
{
    perror(what);
    reboot(RB_POWER_OFF);
    _exit(1);
}

static void load(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);

    if (file < 0 || syscall(SYS_finit_module, file, "", 0) != 0) {
        give_up(path);
    }
    close(file);
}

static void load_all(const char *folder)
{
    struct dirent **names;
    int count = scandir(folder, &names, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        char path[512];

        if (names[i]->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
            load(path);
        }
    }
}

int main(void)
{
    const char *init = getenv("vm_init");

    if (init == NULL) {
        give_up("vm_init");
    }
    load_all("/modules");
    if (mount("host", "/host", "9p", MS_RDONLY,
              "trans=virtio,version=9p2000.L,cache=loose,msize=262144") != 0) {
        give_up("mount host");
    }
    if (chdir("/host") != 0 || chroot(".") != 0) {
        give_up("chroot");
    }
    execl(init, init, (char *)NULL);
    give_up(init);
}
