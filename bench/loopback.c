/* Keeps a server that would listen on every address to this machine: LD_PRELOAD. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

int bind(int socket, const struct sockaddr *address, socklen_t length)
{
    static int (*real)(int, const struct sockaddr *, socklen_t);
    if (!real)
        real = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind");
    if (address->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in here;
        memcpy(&here, address, sizeof here);
        if (here.sin_addr.s_addr == htonl(INADDR_ANY))
            here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return real(socket, (struct sockaddr *)&here, sizeof here);
    }
    return real(socket, address, length);
}
