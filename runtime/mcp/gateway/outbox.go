package gateway

import (
	"errors"
	"sync"
)

var errClosed = errors.New("the stream to the agent is closed")

// outbox carries messages to one reader, in order. Posting never waits for the
// reader; what it does not take piles up to a bound, and then the stream is given
// up. A goroutine exists only while something is queued.
type outbox struct {
	// write sends one whole message; flush what was written. They are called
	// under writing, by one goroutine at a time.
	write func(message []byte) error
	flush func() error
	// overflow is called once, from post, when the reader is too slow.
	overflow func()

	maxMessages, maxBytes int

	writing sync.Mutex // taken before mu
	mu      sync.Mutex
	queue   [][]byte
	size    int
	running bool
	closed  bool
}

// post queues a message. It reports false where the stream is closed or, by this
// message, over its bound.
func (o *outbox) post(message []byte) bool {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return false
	}
	if len(o.queue) >= o.maxMessages || len(o.queue) > 0 && o.size+len(message) > o.maxBytes {
		o.closed, o.queue = true, nil
		o.mu.Unlock()
		o.overflow()
		return false
	}
	o.queue = append(o.queue, message)
	o.size += len(message)
	start := !o.running
	o.running = true
	o.mu.Unlock()
	if start {
		go o.run()
	}
	return true
}

func (o *outbox) run() {
	o.writing.Lock()
	defer o.writing.Unlock()
	_ = o.drain(false)
}

// drain writes what is queued, and with last set closes the box at the moment it
// is empty. The caller holds writing.
func (o *outbox) drain(last bool) error {
	for {
		o.mu.Lock()
		if o.closed {
			o.mu.Unlock()
			return errClosed
		}
		if len(o.queue) == 0 {
			o.running, o.closed = false, last
			o.mu.Unlock()
			return nil
		}
		batch := o.queue
		o.queue, o.size = nil, 0
		o.mu.Unlock()
		for _, message := range batch {
			if err := o.write(message); err != nil {
				o.close()
				return err
			}
		}
		if err := o.flush(); err != nil {
			o.close()
			return err
		}
	}
}

// with runs f after everything queued before, in its place in the order.
func (o *outbox) with(f func() error) error {
	o.writing.Lock()
	defer o.writing.Unlock()
	if err := o.drain(false); err != nil {
		return err
	}
	if err := f(); err != nil {
		o.close()
		return err
	}
	return nil
}

// finish is with, and nothing is taken or written afterwards.
func (o *outbox) finish(f func() error) error {
	o.writing.Lock()
	defer o.writing.Unlock()
	if err := o.drain(true); err != nil {
		return err
	}
	return f()
}

func (o *outbox) close() {
	o.mu.Lock()
	o.closed, o.queue = true, nil
	o.mu.Unlock()
}
