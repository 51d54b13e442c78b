package driver

import "os"

// HostPIDs reports whether this process numbers processes as the host does. In a container with numbers of its own the driver shows
// that container's processes at most.
func HostPIDs() bool {
	link, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && link == "pid:[4026531836]" // PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h
}
