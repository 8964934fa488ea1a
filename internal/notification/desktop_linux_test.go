package notification

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"go.uber.org/goleak"

	"sallyport/internal/coded"
	"sallyport/internal/keyringtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a notification service that writes down what it is given.
type service struct {
	can  []string
	conn *dbus.Conn

	mu    sync.Mutex
	shown map[uint32][2]string // title and body
	last  uint32
}

func (s *service) GetCapabilities() ([]string, *dbus.Error) { return s.can, nil }

func (s *service) Notify(_ string, replaces uint32, _, title, body string, _ []string, _ map[string]dbus.Variant, _ int32) (uint32, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if replaces == 0 {
		s.last++
		replaces = s.last
	}
	s.shown[replaces] = [2]string{title, body}
	return replaces, nil
}

func (s *service) CloseNotification(id uint32) *dbus.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.shown, id)
	return nil
}

func (s *service) text(id uint32) [2]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown[id]
}

func (s *service) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.shown)
}

func serviceOn(t *testing.T, login *keyringtest.Session, can ...string) *service {
	t.Helper()
	conn, err := login.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &service{can: can, conn: conn, shown: map[uint32][2]string{}}
	if err := conn.Export(s, busPath, busName); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.RequestName(busName, dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTextIsShownAsText(t *testing.T) {
	hostile := Notice{Key: "a", Title: strings.Repeat("n", 1<<20), Body: "<b>yes</b>\n&amp; <img src=\"https://x.example\"/>", Action: "Review"}
	for name, row := range map[string]struct {
		can  []string
		body string
	}{
		"a service that reads markup gets it escaped": {[]string{"body", "body-markup"}, "&lt;b&gt;yes&lt;/b&gt; &amp;amp; &lt;img src=&#34;https://x.example&#34;/&gt;"},
		"one that reads none gets it as it is":        {[]string{"body"}, "<b>yes</b> &amp; <img src=\"https://x.example\"/>"},
	} {
		t.Run(name, func(t *testing.T) {
			login := keyringtest.NoProvider(t)
			s := serviceOn(t, login, row.can...)
			d, err := Open(t.Context(), Config{Name: "Sallyport", Getenv: login.Getenv})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close(t.Context())
			if err := d.Show(t.Context(), hostile); err != nil {
				t.Fatal(err)
			}
			if got := s.text(1); got[1] != row.body || len([]rune(got[0])) != longestTitle {
				t.Errorf("it shows a title of %d and %q", len(got[0]), got[1])
			}
		})
	}
}

func TestANoticeTakesThePlaceOfItsOwn(t *testing.T) {
	login := keyringtest.NoProvider(t)
	s := serviceOn(t, login)
	clicked := make(chan string, 4)
	d, err := Open(t.Context(), Config{Name: "Sallyport", Getenv: login.Getenv, Clicked: func(key string) { clicked <- key }})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []Notice{{Key: "a", Title: "first"}, {Key: "b", Title: "other"}, {Key: "a", Title: "second"}} {
		if err := d.Show(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.text(1)[0]; got != "second" || s.count() != 2 {
		t.Errorf("after the second of a key, its place shows %q, and there are %d", got, s.count())
	}
	for _, signal := range []struct {
		name string
		body []any
	}{
		{"ActionInvoked", []any{uint32(77), "default"}},     // another program's notice
		{"ActionInvoked", []any{"not a number", "x"}},       // nonsense
		{"ActionInvoked", []any{uint32(2), "default"}},      // ours
		{"NotificationClosed", []any{uint32(2), uint32(2)}}, // the person closed it
		{"ActionInvoked", []any{uint32(2), "default"}},      // and it is nobody's now
		{"ActionInvoked", []any{uint32(1), "default"}},
	} {
		if err := s.conn.Emit(busPath, busName+"."+signal.name, signal.body...); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"b", "a"} {
		select {
		case got := <-clicked:
			if got != want {
				t.Errorf("a click gave %q, and not %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the click on %s gave nothing", want)
		}
	}
	d.Withdraw(t.Context(), "never shown")
	d.Close(t.Context())
	if s.text(1) != [2]string{} {
		t.Error("a notice stays after the end of its program")
	}
}

func TestWhereNobodyShowsNotices(t *testing.T) {
	for name, login := range map[string]*keyringtest.Session{
		"no bus":                               keyringtest.NoBus(t),
		"a bus, and nobody who shows anything": keyringtest.NoProvider(t),
	} {
		if _, err := Open(t.Context(), Config{Getenv: login.Getenv}); coded.Of(err) != "notifications-unavailable" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
