package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"sallyport/internal/coded"
	"sallyport/internal/pty"
	"sallyport/runtime/console"
)

// Console is a person's own shell in a connector's place.
type Console struct {
	ID        string    `json:"id"`
	Connector string    `json:"connector"`
	Shell     string    `json:"shell"`
	By        string    `json:"by"`
	Via       string    `json:"via"`
	OpenedAt  time.Time `json:"openedAt"`
	Cols      int       `json:"cols"`
	Rows      int       `json:"rows"`
	Printed   uint64    `json:"printed"` // bytes since it was opened
	Ended     bool      `json:"ended"`
	// Exit is how the shell ended ("exit status 0"), Reason and Sentence why Sallyport
	// ended it, where it did.
	Exit     string `json:"exit,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Sentence string `json:"sentence,omitempty"`
	Next     string `json:"next,omitempty"`
}

// ConsoleList is the consoles that are open or ended just now, and whether whoever asks
// may have one here.
type ConsoleList struct {
	Consoles []Console `json:"consoles"`
	// Refused says why no console is opened the way that this was asked; absent where
	// one is.
	Refused *Error `json:"refused,omitempty"`
}

// ConsoleSize is what a terminal shows, in characters.
type ConsoleSize struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// NewConsole opens a console.
type NewConsole struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
	// Term is what the terminal understands; "" is xterm-256color.
	Term string `json:"term,omitempty"`
}

// ConsoleInput is what is typed, in standard base64.
type ConsoleInput struct {
	Data []byte `json:"data"`
}

// ConsoleOutput is what was printed from an offset on, in standard base64.
type ConsoleOutput struct {
	Data []byte `json:"data"`
	// Next is what to ask for after this.
	Next uint64 `json:"next"`
	// Dropped are bytes before this that are no longer there.
	Dropped uint64 `json:"dropped"`
	// Ended is true when this is the last of it.
	Ended   bool    `json:"ended"`
	Console Console `json:"console"`
}

const consolePath = "/v1/consoles/{id}"

var consoleRoutes = []Route{{
	Method: http.MethodPost, Path: connectorPath + "/console", Access: Operator,
	Summary: "Opens a shell in its place: its folder, its environment, its approval. For the window and the command line; for browsers and programs where the operator said so.",
	Body:    NewConsole{}, Answer: Console{}, Serve: (*Server).openConsole,
}, {
	Method: http.MethodGet, Path: "/v1/consoles", Access: Operator,
	Summary: "The consoles that are open or ended just now, and whether one may be opened here.", Answer: ConsoleList{}, Serve: (*Server).listConsoles,
}, {
	Method: http.MethodGet, Path: consolePath + "/output", Access: Operator,
	Summary: "What it printed from an offset on: a long poll.", Query: []string{"after", "wait"}, Answer: ConsoleOutput{}, Serve: (*Server).consoleOutput,
}, {
	Method: http.MethodPost, Path: consolePath + "/input", Access: Operator,
	Summary: "Types into it, at most 64 KiB at once.", Body: ConsoleInput{}, Answer: Done{}, Serve: (*Server).consoleInput,
}, {
	Method: http.MethodPost, Path: consolePath + "/size", Access: Operator,
	Summary: "Tells its programs another size.", Body: ConsoleSize{}, Answer: Done{}, Serve: (*Server).consoleSize,
}, {
	Method: http.MethodDelete, Path: consolePath, Access: Operator,
	Summary: "Closes it and ends everything in it.", Answer: Console{}, Serve: (*Server).closeConsole,
}}

func (s *Server) openConsole(c Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	var asked NewConsole
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	info, err := s.host.OpenConsole(r.Context(), id, console.Options{Size: sizeOf(asked.Cols, asked.Rows), Term: asked.Term, By: s.by(c)})
	if err != nil {
		return nil, err
	}
	return consoleView(info), nil
}

// sizeOf turns what cannot be a size into one that is refused.
func sizeOf(cols, rows int) pty.Size {
	const most = 1<<16 - 1
	return pty.Size{Cols: uint16(min(max(cols, 0), most)), Rows: uint16(min(max(rows, 0), most))}
}

func (s *Server) listConsoles(c Caller, _ *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	list := ConsoleList{Consoles: []Console{}}
	for _, info := range s.host.Consoles.List() {
		list.Consoles = append(list.Consoles, consoleView(info))
	}
	if err := s.host.Gate.MayUseConsole(s.by(c)); err != nil {
		_, body := errorBody(err)
		list.Refused = &body
	}
	return list, nil
}

// consoleOf is the console that an address names, for one who may have it.
func (s *Server) consoleOf(c Caller, r *http.Request) (string, error) {
	if err := s.host.Fault(); err != nil {
		return "", err
	}
	id := r.PathValue("id")
	if err := s.host.Consoles.Known(id); err != nil {
		return "", err
	}
	return id, s.host.Gate.MayUseConsole(s.by(c))
}

func (s *Server) consoleOutput(c Caller, r *http.Request) (any, error) {
	id, err := s.consoleOf(c, r)
	if err != nil {
		return nil, err
	}
	var after uint64
	if text := r.FormValue("after"); text != "" {
		if after, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, coded.New("bad-request", "after is not an offset")
		}
	}
	wait, err := pollTime(r.FormValue("wait"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	out, err := s.host.Consoles.Output(ctx, id, after)
	if err == nil {
		err = s.host.Gate.MayUseConsole(s.by(c)) // it may have been taken away while this waited
	}
	if err != nil {
		return nil, err
	}
	return ConsoleOutput{Data: out.Data, Next: out.Next, Dropped: out.Dropped, Ended: out.Info.Ended, Console: consoleView(out.Info)}, nil
}

func (s *Server) consoleInput(c Caller, r *http.Request) (any, error) {
	id, err := s.consoleOf(c, r)
	if err != nil {
		return nil, err
	}
	var typed ConsoleInput
	if err := read(r, &typed); err != nil {
		return nil, err
	}
	return Done{OK: true}, s.host.Consoles.Input(id, typed.Data)
}

func (s *Server) consoleSize(c Caller, r *http.Request) (any, error) {
	id, err := s.consoleOf(c, r)
	if err != nil {
		return nil, err
	}
	var size ConsoleSize
	if err := read(r, &size); err != nil {
		return nil, err
	}
	return Done{OK: true}, s.host.Consoles.Resize(id, sizeOf(size.Cols, size.Rows))
}

func (s *Server) closeConsole(c Caller, r *http.Request) (any, error) {
	id, err := s.consoleOf(c, r)
	if err != nil {
		return nil, err
	}
	info, err := s.host.Consoles.Stop(r.Context(), id, s.by(c))
	if err != nil {
		return nil, err
	}
	return consoleView(info), nil
}

func consoleView(info console.Info) Console {
	view := Console{
		ID: info.ID, Connector: info.Connector.String(), Shell: info.Shell, By: info.By.User, Via: info.By.Via, OpenedAt: info.OpenedAt,
		Cols: int(info.Size.Cols), Rows: int(info.Size.Rows), Printed: info.Printed, Ended: info.Ended,
	}
	if info.Ended {
		view.Exit = info.Exit
		if why := info.Reason; why != nil {
			view.Reason, view.Sentence, view.Next = why.Code, why.Error(), why.Next
		}
	}
	return view
}
