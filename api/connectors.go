package api

import (
	"net/http"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

// NewConnector is a connector without a bundle, for connectors.json. It enters as
// data that nobody approved: nothing of it is looked up, run or dialled before a
// person has agreed to it like to any plugin's.
type NewConnector struct {
	Name string `json:"name"`
	plugins.HandEntry
}

// ConnectorName is the new name of a connector in connectors.json.
type ConnectorName struct {
	Name string `json:"name"`
}

// ConnectorList is the connectors of connectors.json.
type ConnectorList struct {
	Connectors []HandConnector `json:"connectors"`
	Problems   []Problem       `json:"problems"`
}

// HandConnector is one of them: how it stands and what it declares.
type HandConnector struct {
	Connector
	Declares Declares `json:"declares"`
}

var handRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/connectors", Access: Operator,
	Summary: "The connectors written by hand (connectors.json).", Answer: ConnectorList{}, Serve: (*Server).listHand,
}, {
	Method: http.MethodPost, Path: "/v1/connectors", Access: Operator,
	Summary: "Writes a connector into connectors.json, as data that is not approved: nothing starts.",
	Body:    NewConnector{}, Answer: Connector{}, Serve: (*Server).addHand,
}, {
	Method: http.MethodDelete, Path: "/v1/connectors/{name}", Access: Operator,
	Summary: "Takes a connector out of connectors.json; if it runs it is stopped.", Answer: Done{}, Serve: (*Server).removeHand,
}, {
	Method: http.MethodPost, Path: "/v1/connectors/{name}/rename", Access: Operator,
	Summary: "Gives a connector another name, under which it has to be approved anew.",
	Body:    ConnectorName{}, Answer: Connector{}, Serve: (*Server).renameHand,
}}

func (s *Server) listHand(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	found, err := s.host.Listing(r.Context())
	if err != nil {
		return nil, err
	}
	list := ConnectorList{Connectors: []HandConnector{}, Problems: []Problem{}}
	for _, p := range found.Plugins {
		if p.Format != plugins.ByHand {
			continue
		}
		list.Problems = append(list.Problems, problemsOf(p.Problems)...)
		for _, c := range p.Connectors {
			list.Connectors = append(list.Connectors, HandConnector{s.line(r.Context(), c.ID), declares(c)})
		}
	}
	return list, nil
}

func (s *Server) addHand(c Caller, r *http.Request) (any, error) {
	var asked NewConnector
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	if asked.Name == "" {
		return nil, coded.New("bad-request", "the connector has no name")
	}
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	id, err := s.host.AddConnector(r.Context(), asked.Name, asked.HandEntry, s.by(c))
	if err != nil {
		return nil, err
	}
	return s.line(r.Context(), id), nil
}

func (s *Server) removeHand(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	if err := s.host.RemoveConnector(r.Context(), r.PathValue("name"), s.by(c)); err != nil {
		return nil, err
	}
	return Done{OK: true}, nil
}

func (s *Server) renameHand(c Caller, r *http.Request) (any, error) {
	var asked ConnectorName
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	id, err := s.host.RenameConnector(r.Context(), r.PathValue("name"), asked.Name, s.by(c))
	if err != nil {
		return nil, err
	}
	return s.line(r.Context(), id), nil
}
