//go:build linux

// Command delay makes two network devices that are joined: what is sent on one arrives on the other after a time, in order
// and without loss. It stands in for tc's netem where a kernel has none. For root; the devices end with the program.
//
//	go run ./bench/delay -by 5ms near far    makes the devices near and far, prints "ready", ends with its input
//
// Packets travel as large as TCP makes them (segmentation offload), so that one core shuttles several Gbit/s. Give the
// devices their addresses, networks and rates with ip and tc.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// waiting is the most packets on their way in one direction; further ones are lost, as at a full queue.
const waiting = 8192

// largest is a packet of 64 KiB with the kernel's header before it.
const largest = 1<<16 + 64

func main() {
	log.SetFlags(0)
	log.SetPrefix("delay: ")
	by := flag.Duration("by", 5*time.Millisecond, "time that each packet takes, in each direction")
	flag.Parse()
	if flag.NArg() != 2 {
		log.Fatal("names of two devices, please: delay -by 5ms near far")
	}
	near, far := open(flag.Arg(0)), open(flag.Arg(1))
	go carry(near, far, *by)
	go carry(far, near, *by)
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// open makes a device of IP packets, each with a header that says how large its segments are.
func open(name string) *os.File {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		log.Fatalf("/dev/net/tun: %v", err)
	}
	device, err := unix.NewIfreq(name)
	if err != nil {
		log.Fatalf("device %s: %v", name, err)
	}
	device.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, device); err != nil {
		log.Fatalf("device %s: %v", name, err)
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4|unix.TUN_F_TSO6); err != nil {
		log.Fatalf("device %s: offload: %v", name, err)
	}
	return os.NewFile(uintptr(fd), name)
}

type packet struct {
	due  time.Time
	data []byte
}

// carry writes to what was read of from, by later. It ends with either device.
func carry(from, to *os.File, by time.Duration) {
	on := make(chan packet, waiting)
	free := make(chan []byte, waiting)
	go func() {
		for p := range on {
			time.Sleep(time.Until(p.due))
			_, _ = to.Write(p.data) // a device that is down loses it
			free <- p.data[:largest]
		}
	}()
	defer close(on)
	for {
		var buffer []byte
		select {
		case buffer = <-free:
		default:
			buffer = make([]byte, largest)
		}
		n, err := from.Read(buffer)
		if err != nil {
			log.Printf("device %s: %v", from.Name(), err)
			return
		}
		select {
		case on <- packet{time.Now().Add(by), buffer[:n]}:
		default:
		}
	}
}
