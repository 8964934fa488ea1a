package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
)

const (
	// endpointWait bounds the goodbye to a dialled server.
	endpointWait = 3 * time.Second
	// Between attempts to listen for what belongs to no call.
	firstListenDelay = time.Second
	lastListenDelay  = time.Minute
)

// endpoint is the wire to a server that is dialled (MCP 2025-11-25, streamable
// HTTP). It follows no redirect at all, so that no header reaches another origin.
// It uses no proxy either, whatever HTTPS_PROXY says: a proxy would choose the
// address that is dialled, and nobody could check it. It does not resume broken
// streams.
type endpoint struct {
	conn    *Conn
	url     string
	headers map[string]string
	bearer  Bearer // nil where requests are not signed
	limit   int
	client  *http.Client
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup
	ready   chan struct{} // closed when the session is initialized
	once    sync.Once

	mu      sync.Mutex
	over    bool // nothing more is begun
	session string
	version string
}

// Dial prepares a connection with a server that runs already. Nothing is sent;
// Handshake comes next. Plain http is for loopback addresses only.
func Dial(address string, headers map[string]string, o Options) (*Conn, error) {
	w, err := newEndpoint(address, headers, o)
	if err != nil {
		return nil, err
	}
	c := newConn(o)
	w.conn, c.wire = c, w
	go c.run()
	return c, nil
}

func newEndpoint(address string, headers map[string]string, o Options) (*endpoint, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, &coded.Error{Code: "endpoint-refused", Sentence: "the endpoint is not a URL", Err: err}
	}
	host := target.Hostname()
	if target.Scheme != "https" && (target.Scheme != "http" || !permissions.IsLoopbackName(host)) || target.User != nil {
		return nil, coded.New("endpoint-refused", "an endpoint is https, or http on this machine, and holds no password")
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return nil, coded.New("endpoint-refused", "the endpoint's host has letters that permissions cannot name; write it with xn--")
	}
	out, err := newOutbound(target, o)
	if err != nil {
		return nil, err
	}
	w := &endpoint{
		url: address, headers: headers, limit: o.limit(), ready: make(chan struct{}),
		client: &http.Client{
			Transport:     newTransport(out.dial, o.Network),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if signs(headers) {
		w.bearer = o.Bearer
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w, nil
}

// receive listens for what belongs to no call, for as long as the server offers
// that; answers come with the requests.
func (w *endpoint) receive(func(Envelope)) *ProtocolError {
	select {
	case <-w.conn.dead:
	case <-w.ready:
		w.listen()
		<-w.conn.dead
	}
	w.settleWork()
	return newProtocolError(TransportClosed, "the connection was closed", nil)
}

func (w *endpoint) listen() {
	for delay := firstListenDelay; ; delay = min(2*delay, lastListenDelay) {
		response, err := w.do(w.ctx, http.MethodGet, w.url, nil)
		if refusedBy(err) != nil {
			return // a call will say so
		}
		if err == nil {
			offered := response.StatusCode == http.StatusOK
			if offered {
				w.body(response)
			}
			response.Body.Close()
			if !offered {
				return
			}
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-w.conn.dead:
			timer.Stop()
			return
		}
	}
}

// begin runs work that the connection waits for, unless that waits already.
func (w *endpoint) begin(work func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.work.Go(work)
	}
	return !w.over
}

// settleWork waits for all that was begun; nothing is begun any more.
func (w *endpoint) settleWork() {
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	w.work.Wait()
}

// send posts one message. A request's failure fails its call; a notification is
// waited for, because what follows it may depend on it.
func (w *endpoint) send(ctx context.Context, id int64, line []byte) error {
	begun := make(chan error, 2)
	if !w.begin(func() {
		if err := w.post(ctx, line, begun); id != 0 {
			w.conn.reject(id, err)
		}
	}) {
		return w.conn.Cause()
	}
	if id != 0 {
		return nil
	}
	select {
	case err := <-begun:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.conn.dead:
		return w.conn.Cause()
	}
}

// post sends a message and delivers what comes back. It tells begun once the
// server has taken the message, and returns why no more will come.
func (w *endpoint) post(ctx context.Context, line []byte, begun chan<- error) (why error) {
	defer func() { begun <- why }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	response, err := w.do(ctx, http.MethodPost, w.url, line)
	if refusal := refusedBy(err); refusal != nil {
		return refusal // which is no failure of the server's
	}
	if err != nil {
		if ctx.Err() == nil {
			w.conn.fail(newProtocolError(TransportClosed, "the server cannot be reached", withoutURL(err)))
			err = w.conn.Cause()
		}
		return withoutURL(err)
	}
	defer response.Body.Close()
	if err := w.judge(response); err != nil {
		return err
	}
	if bytes.Contains(line, []byte(`"method":"notifications/initialized"`)) {
		w.once.Do(func() { close(w.ready) })
	}
	begun <- nil
	w.body(response)
	return newProtocolError(TransportClosed, "the server ended its answer without the result", nil)
}

// judge takes the session id of a good response. A lost session ends the
// connection; any other bad status fails its own call.
func (w *endpoint) judge(response *http.Response) error {
	status := response.StatusCode
	if status >= 200 && status < 300 {
		w.mu.Lock()
		if id := response.Header.Get("Mcp-Session-Id"); id != "" && w.session == "" {
			w.session = id
		}
		w.mu.Unlock()
		return nil
	}
	sentence := fmt.Sprintf("the server answered with HTTP status %d", status)
	if status == http.StatusNotFound {
		err := newProtocolError(TransportClosed, sentence, nil)
		w.conn.fail(err)
		return err
	}
	return coded.New("http-status", sentence)
}

func (w *endpoint) exchange(ctx context.Context, method, address string, body []byte, token string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range w.headers {
		request.Header.Set(name, value)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	} else {
		request.Header.Set("Accept", "text/event-stream")
	}
	w.mu.Lock()
	if w.session != "" {
		request.Header.Set("Mcp-Session-Id", w.session)
	}
	if w.version != "" {
		request.Header.Set("Mcp-Protocol-Version", w.version)
	}
	w.mu.Unlock()
	return w.client.Do(request)
}

// body delivers the messages of a response; a bad one settles the connection as
// it would on stdout.
func (w *endpoint) body(response *http.Response) {
	var err error
	switch kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind {
	case "text/event-stream":
		err = w.events(response.Body, func(_ string, data []byte) error { return w.deliver(data) })
	case "application/json":
		err = w.whole(response.Body)
	}
	var fault *ProtocolError
	if errors.As(err, &fault) {
		w.conn.fail(fault)
	}
}

func (w *endpoint) whole(body io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(body, int64(w.limit)+1))
	if err != nil {
		return err
	}
	return w.deliver(data)
}

func (w *endpoint) deliver(data []byte) error {
	if len(data) > w.limit {
		over := newProtocolError(FrameTooLarge, "the server sent a message over the size limit", nil)
		over.Limit, over.Size = int64(w.limit), int64(len(data))
		return over
	}
	if data = bytes.TrimSpace(data); len(data) == 0 {
		return nil
	}
	envelope, err := new(Parser).Parse(data)
	if err == nil {
		w.conn.handle(envelope)
	}
	return err
}

// events reads server-sent events: the name, which is "message" unless one is
// given, and the data, which is no longer than a message may be. What else an event
// has is passed over line by line.
func (w *endpoint) events(body io.Reader, take func(name string, data []byte) error) error {
	lines := NewFramer(body, w.limit+len("data: "))
	lines.keepEmpty = true
	name, data := "message", []byte(nil)
	for {
		line, err := lines.Next()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			if err := take(name, data); err != nil {
				return err
			}
			name, data = "message", data[:0]
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			if len(data) > 0 {
				data = append(data, '\n')
			}
			if data = append(data, value...); len(data) > w.limit {
				return w.deliver(data)
			}
		}
	}
}

func (w *endpoint) reply(line []byte, _ bool) {
	if w.ctx.Err() == nil {
		w.begin(func() { _ = w.post(w.ctx, line, make(chan error, 2)) }) // it has told whoever waits
	}
}

func (w *endpoint) expired(context.Context) {}

// negotiated is told of the version as soon as it is known.
func (w *endpoint) negotiated(version string) {
	w.mu.Lock()
	w.version = version
	w.mu.Unlock()
}

func (w *endpoint) end(*ProtocolError) {
	w.cancel()
	w.mu.Lock()
	session := w.session
	w.mu.Unlock()
	if session != "" {
		ctx, cancel := context.WithTimeout(context.Background(), endpointWait)
		if response, err := w.do(ctx, http.MethodDelete, w.url, nil); err == nil {
			response.Body.Close()
		}
		cancel()
	}
	w.client.CloseIdleConnections()
}

// withoutURL drops the address from the text of an error: a query may be secret.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) && !strings.Contains(wrapped.Err.Error(), "://") {
		return wrapped.Err
	}
	return err
}
