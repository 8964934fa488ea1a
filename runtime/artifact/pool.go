package artifact

import "sync"

// task is one unit of work: a directory to list, or a chunk of entries of an
// open directory to read.
type task struct {
	node  *node
	chunk []entry // nil: list node
}

// pool is a last-in, first-out stack of tasks shared by the workers. That order
// keeps the walk depth first, so that few directories are open at once.
type pool struct {
	mu      sync.Mutex
	wake    sync.Cond
	tasks   []task
	open    int // tasks on the stack or being worked on
	waiting int
}

func newPool() *pool {
	p := &pool{}
	p.wake.L = &p.mu
	return p
}

func (p *pool) push(tasks ...task) {
	if len(tasks) == 0 {
		return
	}
	p.mu.Lock()
	p.tasks = append(p.tasks, tasks...)
	p.open += len(tasks)
	if p.waiting > 0 {
		p.wake.Broadcast()
	}
	p.mu.Unlock()
}

// next returns a task, waiting for one while another worker may still push.
func (p *pool) next() (task, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.tasks) == 0 {
		if p.open == 0 {
			return task{}, false
		}
		p.waiting++
		p.wake.Wait()
		p.waiting--
	}
	last := len(p.tasks) - 1
	t := p.tasks[last]
	p.tasks[last] = task{}
	p.tasks = p.tasks[:last]
	return t, true
}

// done ends a task that next returned.
func (p *pool) done() {
	p.mu.Lock()
	p.open--
	if p.open == 0 {
		p.wake.Broadcast()
	}
	p.mu.Unlock()
}
