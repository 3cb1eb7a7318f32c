#!/bin/sh
# A computer for a guest that is reached by standard input and output: the namespaces that a
# container has, without a network, and a root of its own with this machine's /usr. An ordinary
# user gets the rights for that by a user namespace.
#   computer.sh GUEST [WORD]
#       pipes  the guest's input and output are pipes, as docker's are
#       late   it is not process 1, and makes its own namespaces
#       bare   without the right to mount, as in a container; with that over its network
#       weak   without any right
#       open   with a network interface that is up
#       leaky  the same, without the right to leave it behind
set -eu
guest=$1 word=${2:-}
if [ "$(echo $$)" != 1 ]; then
    user=
    [ "$(id -u)" = 0 ] || user="--user --map-user=1000 --map-group=1000 --keep-caps"
    if [ "$word" = pipes ]; then
        exec 4<&0
        { cat <&4 | unshare $user --net --pid --mount --ipc --uts --fork --kill-child "$0" "$guest"; } | cat
        exit
    fi
    exec unshare $user --net --pid --mount --ipc --uts --fork --kill-child "$0" "$guest" "$word"
fi
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /mnt
cd /mnt
mkdir -p usr etc proc dev/shm run tmp var/tmp workspace home/user root old
for place in run tmp var/tmp workspace home/user dev/shm; do
    mount -t tmpfs tmpfs $place
done
chmod 755 run workspace home/user
mount --rbind /usr usr
for link in bin sbin lib lib32 lib64; do
    [ ! -L "/$link" ] || ln -s "usr/$link" "$link"
done
for name in alternatives ssl ld.so.cache ld.so.conf ld.so.conf.d; do
    [ ! -e "/etc/$name" ] || cp -a "/etc/$name" etc/ 2>/dev/null || true
done
echo 'root:x:0:0:root:/root:/bin/sh
user:x:1000:1000:user:/home/user:/bin/sh' >etc/passwd
echo 'root:x:0:
user:x:1000:' >etc/group
echo 'hosts: files dns' >etc/nsswitch.conf
printf '127.0.0.1\tlocalhost sandbox\n::1\tlocalhost sandbox\n' >etc/hosts
echo sandbox >etc/hostname
hostname sandbox
echo 'nameserver 192.0.2.1' >etc/resolv.conf
mount --bind etc/resolv.conf etc/resolv.conf # as docker does
[ "$(stat -c %u /usr)" != 0 ] || chown 1000:1000 workspace home/user 2>/dev/null || true
for name in null zero full random urandom tty; do
    : >"dev/$name"
    mount --bind "/dev/$name" "dev/$name"
done
mkdir dev/pts
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t proc proc proc
cp "$guest" barchan-guest
case $word in
open | leaky) ip link add leak type veth peer name other && ip link set leak up ;;
esac
pivot_root . old
case $word in
late) run='/barchan-guest stdio; exit $?' ;;
bare | leaky) run='exec setpriv --bounding-set -sys_admin --inh-caps -sys_admin --ambient-caps -sys_admin /barchan-guest stdio' ;;
weak) run='exec setpriv --bounding-set -all --inh-caps -all --ambient-caps -all /barchan-guest stdio' ;;
*) run='exec /barchan-guest stdio' ;;
esac
exec chroot . /bin/sh -c "umount -lnic /old && mount -nic -o remount,bind,ro none / && $run"
