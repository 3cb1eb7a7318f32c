#!/bin/bash
# Runs tests under the kernel of a Debian release, in a virtual machine with version 2 of control groups:
#   tests/support/vm.sh [--release bookworm] [--filter REGEX] [--folder DIR]
# As root, with debootstrap, qemu-system-x86, cpio, kmod and busybox-static. The machine is emulated where /dev/kvm
# is of no use (--no-kvm), so what takes a second takes ten. Not a part of continuous integration.
#
# The release is unpacked into the folder once, the project built in it by its own compiler, and everything put on
# a disk of which the machine has a copy; nothing that happens in it comes back but its words.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/core/cmake/bootstrap.sh"

release=bookworm
filter='^(sandbox|hostile)/|unit/'
folder=${XDG_CACHE_HOME:-$HOME/.cache}/barchan-vm
mirror=$(sed -n 's/^\(URIs: *\|deb \(\[[^]]*\] \)\?\)\([a-z]*:[^ ]*debian\/\?\)\( .*\)\?$/\3/p' \
    /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1 || true)
accelerator=(-enable-kvm -cpu host)
usage="tests/support/vm.sh [--release NAME] [--filter REGEX] [--folder DIR] [--mirror URL] [--no-kvm]"
while [ $# -gt 0 ]; do
    case $1 in
    --release) release=${2:?$usage}; shift ;;
    --filter) filter=${2:?$usage}; shift ;;
    --folder) folder=${2:?$usage}; shift ;;
    --mirror) mirror=${2:?$usage}; shift ;;
    --no-kvm) accelerator=(-accel tcg,thread=multi -cpu max) ;;
    *) die "unknown option '$1': $usage" ;;
    esac
    shift
done
[ "$(id -u)" = 0 ] || die "it unpacks a system: run it as root"
[ -w /dev/kvm ] || accelerator=(-accel tcg,thread=multi -cpu max)
for tool in debootstrap qemu-system-x86_64 cpio depmod busybox; do
    command -v "$tool" >/dev/null || die "'$tool' is missing: install debootstrap qemu-system-x86 cpio kmod busybox-static"
done
root=$folder/$release
mkdir -p "$folder"

if [ ! -e "$root/.whole" ]; then
    say "unpacking $release into $root"
    rm -rf "$root"
    {
        debootstrap --variant=minbase "$release" "$root" "${mirror:?name it: $usage}" &&
            chroot "$root" apt-get update && chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install \
                -y --no-install-recommends $BUILD_PACKAGES $TEST_PACKAGES perl nodejs ca-certificates linux-image-amd64
    } >"$folder/debootstrap.log" 2>&1 || die "see $folder/debootstrap.log"
    touch "$root/.whole"
fi
version=$(ls "$root/lib/modules" | tail -n 1)

say "building with the compiler of $release"
mkdir -p "$root/src"
git -C "$top" ls-files -z | tar -C "$top" --null -T - -cf - | tar -C "$root/src" -xf -
# Nothing in it needs a file system of the kernel's.
chroot "$root" /bin/bash -c '. /src/core/cmake/bootstrap.sh
    bootstrap_build /src /src/build/tests -DBARCHAN_TESTS=ON -DBARCHAN_EXAMPLES=ON -DBARCHAN_TEST_TIMEOUT=1500'

cat >"$root/sbin/vm-init" <<END
#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CK_TIMEOUT_MULTIPLIER=20
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs devtmpfs /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm; mount -t devpts devpts /dev/pts; mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run; chmod 1777 /tmp; mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up; modprobe overlay
uname -r; /src/build/tests/bin/barchan doctor
cd /src/build/tests && ctest --timeout 1500 --output-on-failure -R '$filter' -E 'network|secret|install'
sync; echo o >/proc/sysrq-trigger; sleep 10
END
chmod +x "$root/sbin/vm-init"

say "making the disk"
start=$folder/$release-start
rm -rf "$start" && mkdir -p "$start"/{bin,modules,mnt,proc,dev}
cp "$(command -v busybox)" "$start/bin/busybox"
depmod -b "$root" "$version"
{
    printf '#!/bin/busybox sh\nbusybox=/bin/busybox\n$busybox mount -t proc p /proc\n$busybox mount -t devtmpfs d /dev\n'
    for module in virtio_pci virtio_blk ext4; do
        modprobe -d "$root" -S "$version" --show-depends "$module"
    done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' | while read -r file; do
        cp "$file" "$start/modules/"
        echo "\$busybox insmod /modules/${file##*/}"
    done
    printf '$busybox sleep 0.5\n$busybox mount -t ext4 /dev/vda /mnt\n$busybox umount /proc\n'
    printf 'exec $busybox switch_root /mnt /sbin/vm-init\n'
} >"$start/init"
chmod +x "$start/init"
(cd "$start" && find . | cpio -o -H newc 2>/dev/null | gzip -1) >"$start.gz"
rm -f "$root.img"
mke2fs -q -t ext4 -d "$root" "$root.img" 8G

say "starting $version"
qemu-system-x86_64 "${accelerator[@]}" -m 4096 -smp 2 -nographic -no-reboot -net none \
    -kernel "$root/boot/vmlinuz-$version" -initrd "$start.gz" -append "console=ttyS0 loglevel=4 panic=-1" \
    -drive "file=$root.img,format=raw,if=virtio,cache=unsafe" </dev/null | tee "$folder/$release.log"
grep -q '100% tests passed' "$folder/$release.log"
