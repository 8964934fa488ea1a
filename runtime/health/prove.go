package health

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sallyport/internal/coded"
	"sallyport/internal/loopback"
)

const (
	// answerWithin is how long a connected program may take to answer. Ours
	// answers in 50 ms; a loaded machine gets forty times that.
	answerWithin = 2 * time.Second
	// dialWithin bounds a dial, which is refused or done at once on loopback
	// except on Windows, where a refusal takes about two seconds.
	dialWithin = 5 * time.Second
	// largestAnswer bounds what is read from a program that may be any.
	largestAnswer = 16 << 10
)

// Codes of the errors of Prove and Dial.
const (
	// NotRunning: nothing listens on the port.
	NotRunning = "not-running"
	// Stranger: something listens and cannot prove that it is our instance.
	Stranger = "stranger-on-port"
)

// Prove asks the program on 127.0.0.1:port for its health and checks its proof
// under key. The error is a *coded.Error with the code NotRunning or Stranger, or
// the context's when that has ended.
// The reply may be unhealthy; that is no error.
func Prove(ctx context.Context, port int, key []byte) (Reply, error) {
	conn, reply, _, err := connect(ctx, port, key)
	if err != nil {
		return Reply{}, err
	}
	conn.Close()
	return reply, nil
}

// Dial connects to 127.0.0.1:port and returns the connection only after the
// program at its other end has proved, on this very connection, that it is our
// instance. So a token that is sent over it afterwards cannot reach a program
// that took the port in between. Errors are those of Prove; an instance that is
// stopping, and so ends the connection after its answer, is NotRunning.
func Dial(ctx context.Context, port int, key []byte) (net.Conn, Reply, error) {
	conn, reply, stays, err := connect(ctx, port, key)
	if err != nil {
		return nil, Reply{}, err
	}
	if !stays {
		conn.Close()
		return nil, Reply{}, &coded.Error{
			Code: NotRunning, Sentence: fmt.Sprintf("Sallyport on %s is stopping", loopback.URL(port)),
			Next: "start Sallyport",
		}
	}
	return conn, reply, nil
}

// connect dials and proves; stays reports whether conn takes another request.
func connect(ctx context.Context, port int, key []byte) (conn net.Conn, reply Reply, stays bool, err error) {
	address := net.JoinHostPort(loopback.Host, strconv.Itoa(port))
	dialer := net.Dialer{Timeout: dialWithin}
	conn, err = dialer.DialContext(ctx, "tcp4", address)
	if err != nil {
		return nil, Reply{}, false, &coded.Error{
			Code: NotRunning, Sentence: fmt.Sprintf("nothing answers on %s", loopback.URL(port)),
			Next: "start Sallyport", Err: err,
		}
	}
	stop := context.AfterFunc(ctx, func() {
		_ = conn.SetDeadline(time.Unix(1, 0)) // in the past: what waits ends
	})
	reply, stays, err = ask(conn, address, port, key)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil && ctx.Err() != nil {
		conn.Close()
		return nil, Reply{}, false, ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, Reply{}, false, &coded.Error{
			Code:     Stranger,
			Sentence: fmt.Sprintf("another program is on %s: %v", loopback.URL(port), err),
			Next:     "start Sallyport, which takes another port and saves it, or stop that program",
			Err:      err,
		}
	}
	return conn, reply, stays, nil
}

// ask sends one health request with a new nonce and leaves conn ready for the
// next request where the answer says that it stays. Its errors say what was
// wrong and hold nothing of the answer.
func ask(conn net.Conn, address string, port int, key []byte) (reply Reply, stays bool, err error) {
	if err := conn.SetDeadline(time.Now().Add(answerWithin)); err != nil {
		return Reply{}, false, errors.New("the connection cannot be used")
	}
	nonce := rand.Text()
	request := "GET " + DesktopPath + "?nonce=" + url.QueryEscape(nonce) + " HTTP/1.1\r\nHost: " + address + "\r\n\r\n"
	if _, err := io.WriteString(conn, request); err != nil {
		return Reply{}, false, errors.New("it does not read")
	}
	reader := bufio.NewReader(io.LimitReader(conn, largestAnswer))
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return Reply{}, false, errors.New("it gives no HTTP answer")
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusServiceUnavailable {
		return Reply{}, false, fmt.Errorf("it answers with status %d", response.StatusCode)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || response.ContentLength < 0 || reader.Buffered() > 0 {
		return Reply{}, false, errors.New("its answer is not complete")
	}
	reply, err = check(body, response.StatusCode, nonce, port, key)
	return reply, !response.Close, err
}

func check(body []byte, status int, nonce string, port int, key []byte) (Reply, error) {
	var reply Reply
	if err := json.Unmarshal(body, &reply); err != nil || reply.Service != Service {
		return Reply{}, errors.New("its answer is not Sallyport's")
	}
	if len(key) != keyBytes || !hmac.Equal([]byte(reply.Proof), []byte(proof(key, nonce, reply.Instance, port))) {
		return Reply{}, errors.New("it cannot prove to be the instance of this state folder")
	}
	if reply.OK != (status == http.StatusOK) {
		return Reply{}, errors.New("its answer contradicts itself")
	}
	return reply, nil
}
