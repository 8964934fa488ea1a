package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/coded"
	"sallyport/runtime/health"
)

func (c *command) mcpCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "mcp", Short: "Be the MCP server of an agent that only starts commands", Args: exactly(),
		Long: `Connect an agent's stdio to the running sidecar, byte for byte. Starts the
sidecar if none runs. No plugin is ever started by this command itself. A client of
a new name is added and sees all that is enabled: to give it less, add it before,
with sallyport clients add NAME --only ID.

Put it into the agent's configuration as the command of an MCP server:
  {"command": "sallyport", "args": ["mcp", "--client", "claude"]}`,
		Example: "  sallyport mcp --client claude",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.bridge(cmd.Context(), name)
		},
	}
	cmd.Flags().StringVar(&name, "client", "stdio", "which client this is; what it may see is set with sallyport clients")
	return cmd
}

// bridge joins the agent's stdio and a stream of the sidecar until one ends.
func (c *command) bridge(ctx context.Context, name string) error {
	sidecar, err := c.sidecarOrStart(ctx)
	if err != nil {
		return err
	}
	defer sidecar.Close()
	session, err := c.session(ctx, sidecar, name)
	if err != nil {
		return err
	}
	if session.Added {
		c.say("sallyport: %s is a new client and sees everything that is enabled; to give it less: sallyport clients revoke %s ID", shown(name), typed(name))
	}
	stream, err := openStream(ctx, sidecar, session.Token)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	return c.join(stream)
}

// unlockGrace is how long an agent that starts with the person's session waits for the
// keyring to be unlocked: about as long as agents wait for a server.
const unlockGrace = 45 * time.Second

// session gets a token for this process.
func (c *command) session(ctx context.Context, sidecar *running, name string) (session api.ClientToken, err error) {
	for deadline := time.Now().Add(unlockGrace); ; {
		err = sidecar.Post(ctx, "/v1/clients/"+url.PathEscape(name)+"/session", nil, &session)
		if coded.Of(err) != "seal-key-unavailable" || time.Now().After(deadline) {
			return session, err
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return session, ctx.Err()
		}
	}
}

// join copies both ways. The end of the agent's input ends our side only: what
// is still being answered is read to its end.
func (c *command) join(stream *stream) error {
	input := make(chan struct{})
	go func() {
		_, _ = io.Copy(stream.TCPConn, c.In)
		_ = stream.CloseWrite() // the reader below tells
		close(input)
	}()
	if _, err := io.Copy(c.Out, stream.reader); err != nil {
		return fmt.Errorf("cannot pass on what the sidecar says: %w", err)
	}
	select {
	case <-input: // the agent has gone: how does not matter
		return nil
	default:
		return &coded.Error{Code: "transport-closed", Sentence: "the sidecar ended the connection",
			Next: "see sallyport status; the agent may start this command again"}
	}
}

// stream is a connection to the sidecar after the upgrade.
type stream struct {
	*net.TCPConn
	reader io.Reader
}

// openStream asks the sidecar to make a connection the agent's stdio. The token is
// sent over the very connection that has proved itself.
func openStream(ctx context.Context, sidecar *running, token string) (*stream, error) {
	connection, _, err := health.Dial(ctx, sidecar.found.Port, sidecar.key)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, sidecar.found.URL+"/mcp/stream", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", api.StreamProtocol)
	if err := request.Write(connection); err != nil {
		return nil, fmt.Errorf("cannot ask for a stream: %w", err)
	}
	reader := bufio.NewReaderSize(connection, 64<<10)
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open a stream: %w", err), connection.Close())
	}
	defer func() { _ = response.Body.Close() }() // empty after an upgrade
	if response.StatusCode != http.StatusSwitchingProtocols {
		return nil, errors.Join(client.Refusal(response), connection.Close())
	}
	return &stream{connection.(*net.TCPConn), reader}, nil
}

// sidecarOrStart connects to the running sidecar, or starts one that outlives
// this command and waits until it has proved itself.
func (c *command) sidecarOrStart(ctx context.Context) (*running, error) {
	found, err := c.sidecar(ctx)
	if err == nil || coded.Of(err) != "not-running" {
		return found, err
	}
	if err := c.startSidecar(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startGrace)
	defer cancel()
	for {
		if found, err := c.sidecar(ctx); err == nil || coded.Of(err) != "not-running" {
			return found, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, &coded.Error{Code: "not-answering", Sentence: "the sidecar was started and does not answer",
				Next: "start it in a terminal to see why: sallyport serve --verbose"}
		}
	}
}

func (c *command) startSidecar() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	args := []string{"serve"}
	if c.home != "" {
		args = append(args, "--home", c.home)
	}
	cmd := exec.Command(self, args...)
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return errors.Join(coded.New("not-running", "the sidecar could not be started"), err)
	}
	return cmd.Process.Release()
}
