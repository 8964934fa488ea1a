//go:build desktop

package app

/*
#cgo pkg-config: gtk+-3.0 webkit2gtk-4.1
#include <stdlib.h>
#include <string.h>
#include <gtk/gtk.h>
#include <webkit2/webkit2.h>

extern void webProcessEnded(int reason);
extern void webProcessResponds(int responds);
extern void navigationRefused(char *address);
extern void desktopIsDark(void);

static const char home[] = "wails://wails/";
static WebKitWebView *view;
static char *at; // where the page is, as an ended process does not say it any more

// ours: the page itself with any fragment, and what it made for a download.
static gboolean ours(const char *address) {
	size_t n = sizeof home - 1;
	if (address == NULL)
		return FALSE;
	if (strncmp(address, home, n) == 0 && (address[n] == '\0' || address[n] == '#'))
		return TRUE;
	return strncmp(address, "blob:wails://wails/", 19) == 0;
}

static gboolean decide(WebKitWebView *v, WebKitPolicyDecision *decision, WebKitPolicyDecisionType type, gpointer data) {
	if (type == WEBKIT_POLICY_DECISION_TYPE_RESPONSE)
		return FALSE;
	WebKitNavigationAction *action = webkit_navigation_policy_decision_get_navigation_action(WEBKIT_NAVIGATION_POLICY_DECISION(decision));
	const char *address = webkit_uri_request_get_uri(webkit_navigation_action_get_request(action));
	if (type == WEBKIT_POLICY_DECISION_TYPE_NAVIGATION_ACTION && ours(address))
		return FALSE;
	webkit_policy_decision_ignore(decision);
	navigationRefused((char *)address);
	return TRUE;
}

static gboolean deny(WebKitWebView *v, WebKitPermissionRequest *request, gpointer data) {
	webkit_permission_request_deny(request);
	return TRUE;
}

static void ended(WebKitWebView *v, WebKitWebProcessTerminationReason reason, gpointer data) { webProcessEnded((int)reason); }

static void responds(WebKitWebView *v, GParamSpec *spec, gpointer data) {
	webProcessResponds(webkit_web_view_get_is_web_process_responsive(v));
}

static void moved(WebKitWebView *v, GParamSpec *spec, gpointer data) {
	const char *address = webkit_web_view_get_uri(v);
	if (ours(address) && address[0] == home[0]) {
		g_free(at);
		at = g_strdup(address);
	}
}

static GtkWidget *inside(GtkWidget *widget) {
	if (WEBKIT_IS_WEB_VIEW(widget))
		return widget;
	GtkWidget *found = NULL;
	if (GTK_IS_CONTAINER(widget)) {
		GList *children = gtk_container_get_children(GTK_CONTAINER(widget));
		for (GList *one = children; one != NULL && found == NULL; one = one->next)
			found = inside(GTK_WIDGET(one->data));
		g_list_free(children);
	}
	return found;
}

static void tell_dark(void) {
	gboolean dark = FALSE;
	gchar *theme = NULL;
	g_object_get(gtk_settings_get_default(), "gtk-application-prefer-dark-theme", &dark, "gtk-theme-name", &theme, NULL);
	if (dark || (theme != NULL && g_str_has_suffix(theme, "-dark")))
		desktopIsDark();
	g_free(theme);
}

static gboolean guard_now(gpointer data) {
	GList *windows = gtk_window_list_toplevels();
	for (GList *one = windows; one != NULL && view == NULL; one = one->next) {
		GtkWidget *found = inside(GTK_WIDGET(one->data));
		if (found != NULL)
			view = WEBKIT_WEB_VIEW(found);
	}
	g_list_free(windows);
	if (view == NULL)
		return G_SOURCE_CONTINUE;
	tell_dark();
	g_signal_connect(view, "notify::uri", G_CALLBACK(moved), NULL);
	g_signal_connect(view, "decide-policy", G_CALLBACK(decide), NULL);
	g_signal_connect(view, "permission-request", G_CALLBACK(deny), NULL);
	g_signal_connect(view, "web-process-terminated", G_CALLBACK(ended), NULL);
	g_signal_connect(view, "notify::is-web-process-responsive", G_CALLBACK(responds), NULL);
	return G_SOURCE_REMOVE;
}

static gboolean load_now(gpointer data) {
	if (view != NULL)
		webkit_web_view_load_uri(view, at != NULL ? at : home);
	return G_SOURCE_REMOVE;
}

static gboolean end_now(gpointer data) {
	if (view != NULL)
		webkit_web_view_terminate_web_process(view);
	return G_SOURCE_REMOVE;
}

static void guard(void) { g_timeout_add_full(G_PRIORITY_HIGH, 10, guard_now, NULL, NULL); }
static void load(void) { g_idle_add(load_now, NULL); }
static void end(void) { g_idle_add(end_now, NULL); }

static void restore(const char *name, char *value) {
	if (value != NULL)
		setenv(name, value, 1);
	else
		unsetenv(name);
	free(value);
}

static char *copied(const char *value) { return value == NULL ? NULL : strdup(value); }

// GLib reads both folders once and keeps them, so that they are set for that moment alone.
static void keep_below(const char *data, const char *cache) {
	char *was_data = copied(getenv("XDG_DATA_HOME")), *was_cache = copied(getenv("XDG_CACHE_HOME"));
	setenv("XDG_DATA_HOME", data, 1);
	setenv("XDG_CACHE_HOME", cache, 1);
	g_get_user_data_dir();
	g_get_user_cache_dir();
	restore("XDG_DATA_HOME", was_data);
	restore("XDG_CACHE_HOME", was_cache);
}
*/
import "C"

import (
	"context"
	"path/filepath"
	"sync"
	"time"
	"unsafe"

	"github.com/wailsapp/wails/v2/pkg/runtime"

	"sallyport/internal/appicon"
)

// guarded is the window that the calls from C are for: C has no room for more, and there
// is one window in a process.
var guarded struct {
	sync.Mutex
	its       context.Context // Wails'
	window    *window
	ended     []time.Time // when the web process did, lately
	answering bool
}

// prepare makes WebKit keep what it keeps in a folder of ours. Without it, that would be
// a folder of the person's named like this program's file.
func prepare(dir string) {
	data, cache := C.CString(filepath.Join(dir, "data")), C.CString(filepath.Join(dir, "cache"))
	defer C.free(unsafe.Pointer(data))
	defer C.free(unsafe.Pointer(cache))
	C.keep_below(data, cache)
}

// guardWebview watches over what Wails leaves alone: another site's page is never loaded
// into the window, nothing is permitted to a page, and a web process that has ended or
// does not answer is replaced.
func guardWebview(its context.Context, w *window) {
	guarded.Lock()
	guarded.its, guarded.window, guarded.answering = its, w, true
	guarded.Unlock()
	C.guard()
}

// replacePage ends the web process, however stuck it is; a new one loads the page.
func replacePage(*window) { C.end() }

// Ends within crashTime after which a new web process would end as well.
const (
	crashes   = 5
	crashTime = time.Minute
)

//export webProcessEnded
func webProcessEnded(reason C.int) {
	guarded.Lock()
	defer guarded.Unlock()
	w := guarded.window
	if w == nil {
		return
	}
	now := time.Now()
	for len(guarded.ended) > 0 && now.Sub(guarded.ended[0]) > crashTime {
		guarded.ended = guarded.ended[1:]
	}
	guarded.ended, guarded.answering = append(guarded.ended, now), true
	w.log.Warn("the web process has ended", "reason", int(reason), "lately", len(guarded.ended))
	if len(guarded.ended) <= crashes {
		C.load()
		return
	}
	if w.ready.Load() {
		go func() {
			_, _ = runtime.MessageDialog(w.ctx, runtime.MessageDialogOptions{Type: runtime.ErrorDialog, Title: "Sallyport",
				Message: "The page of this window ends again and again. Approved plugins go on running. Close the window and open it again, or use the pages in a browser: sallyport open"})
		}()
	}
}

// slow is how long a web process may not react to a person before it is replaced.
const slow = 20 * time.Second

//export webProcessResponds
func webProcessResponds(responds C.int) {
	guarded.Lock()
	defer guarded.Unlock()
	guarded.answering = responds != 0
	if w := guarded.window; w != nil && !guarded.answering {
		w.log.Warn("the page does not react")
		time.AfterFunc(slow, func() {
			guarded.Lock()
			defer guarded.Unlock()
			if !guarded.answering {
				w.log.Warn("the page has not reacted for a while and is loaded again")
				C.end()
			}
		})
	}
}

// desktopIsDark: until the page is there, a dark desktop sees no bright window. The colour
// is --bg of frontend/src/styles/tokens.css.
//
//export desktopIsDark
func desktopIsDark() {
	guarded.Lock()
	defer guarded.Unlock()
	go runtime.WindowSetBackgroundColour(guarded.its, 0x17, 0x17, 0x15, 255)
}

//export navigationRefused
func navigationRefused(address *C.char) {
	guarded.Lock()
	defer guarded.Unlock()
	if w := guarded.window; w != nil {
		text := C.GoString(address)
		w.log.Warn("the window goes nowhere else", "address", text[:min(len(text), 200)])
	}
}

func icon() []byte { return appicon.PNG(128, false) }
