package notification

import (
	"context"
	"html"
	"slices"
	"sync"

	"github.com/godbus/dbus/v5"

	"sallyport/internal/sessionbus"
)

const (
	busName = "org.freedesktop.Notifications"
	busPath = dbus.ObjectPath("/org/freedesktop/Notifications")

	// defaultAction is what a click on the notice itself means.
	defaultAction = "default"
	// patience is how long a notice stays; 0 would be for good, -1 is as the desktop likes.
	patience = int32(-1)
)

// Desktop is a connection to whoever shows notices (the Desktop Notifications
// Specification 1.2 of freedesktop.org).
type Desktop struct {
	cfg    Config
	conn   *dbus.Conn
	markup bool // bodies are read as markup
	ended  chan struct{}

	mu    sync.Mutex
	shown map[string]uint32 // by key
}

func open(ctx context.Context, cfg Config) (*Desktop, error) {
	address := sessionbus.Address(cfg.Getenv)
	if address == "" {
		return nil, unavailable("there is no desktop session to show notices in", "start it from within the desktop", nil)
	}
	conn, err := dbus.Connect(address)
	if err != nil {
		return nil, unavailable("the desktop session does not answer", "start it from within the desktop", err)
	}
	d := &Desktop{cfg: cfg, conn: conn, ended: make(chan struct{}), shown: map[string]uint32{}}
	if err := d.prepare(ctx); err != nil {
		_ = conn.Close() // it was used for nothing
		return nil, unavailable("this desktop shows no notices", "install a notification service, such as dunst", err)
	}
	return d, nil
}

// prepare asks what the service can do, which also starts one that is started by
// use, and listens before the first notice.
func (d *Desktop) prepare(ctx context.Context) error {
	var can []string
	if err := d.call(ctx, "GetCapabilities").Store(&can); err != nil {
		return err
	}
	d.markup = slices.Contains(can, "body-markup")
	if err := d.conn.AddMatchSignalContext(ctx, dbus.WithMatchObjectPath(busPath), dbus.WithMatchInterface(busName)); err != nil {
		return err
	}
	signals := make(chan *dbus.Signal, 64)
	d.conn.Signal(signals)
	go d.listen(signals)
	return nil
}

func (d *Desktop) call(ctx context.Context, method string, args ...any) *dbus.Call {
	return d.conn.Object(busName, busPath).CallWithContext(ctx, busName+"."+method, 0, args...)
}

// Show shows a notice, in the place of the one of the same key.
func (d *Desktop) Show(ctx context.Context, n Notice) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	body := shortened(n.Body, longestBody)
	if d.markup {
		body = html.EscapeString(body)
	}
	hints := map[string]dbus.Variant{
		"desktop-entry": dbus.MakeVariant(d.cfg.Desktop), "urgency": dbus.MakeVariant(byte(1)), "category": dbus.MakeVariant("im.received"),
	}
	if icon := d.cfg.Icon; icon.Width > 0 {
		hints["image-data"] = dbus.MakeVariant(picture{int32(icon.Width), int32(icon.Height), int32(icon.Width * 4), true, 8, 4, icon.RGBA})
	}
	var id uint32
	err := d.call(ctx, "Notify", d.cfg.Name, d.shown[n.Key], "", shortened(n.Title, longestTitle), body,
		[]string{defaultAction, n.Action}, hints, patience).Store(&id)
	if err != nil {
		return unavailable("the notice could not be shown", "look at what waits: sallyport decisions", err)
	}
	d.shown[n.Key] = id
	return nil
}

// picture is the specification's image-data, (iiibiiay).
type picture struct {
	Width, Height, Stride int32
	Alpha                 bool
	Bits, Channels        int32
	Data                  []byte
}

// Withdraw takes a notice away, if it is still shown.
func (d *Desktop) Withdraw(ctx context.Context, key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id, ok := d.shown[key]; ok {
		_ = d.call(ctx, "CloseNotification", id).Err // the person may have closed it meanwhile
		delete(d.shown, key)
	}
}

func (d *Desktop) listen(signals <-chan *dbus.Signal) {
	defer close(d.ended)
	for signal := range signals {
		if signal.Path != busPath || len(signal.Body) < 2 {
			continue
		}
		id, ok := signal.Body[0].(uint32)
		if !ok {
			continue
		}
		switch signal.Name {
		case busName + ".ActionInvoked":
			if key := d.keyOf(id); key != "" {
				d.cfg.Clicked(key)
			}
		case busName + ".NotificationClosed":
			d.gone(id)
		}
	}
}

func (d *Desktop) keyOf(id uint32) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, shown := range d.shown {
		if shown == id {
			return key
		}
	}
	return ""
}

func (d *Desktop) gone(id uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, shown := range d.shown {
		if shown == id {
			delete(d.shown, key)
		}
	}
}

// Close takes all notices away and ends the connection.
func (d *Desktop) Close(ctx context.Context) {
	d.mu.Lock()
	keys := make([]string, 0, len(d.shown))
	for key := range d.shown {
		keys = append(keys, key)
	}
	d.mu.Unlock()
	for _, key := range keys {
		d.Withdraw(ctx, key)
	}
	_ = d.conn.Close() // nothing is on its way any more
	<-d.ended
}
