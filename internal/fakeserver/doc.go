// Package fakeserver is an MCP server over stdio that misbehaves on demand. Tests
// of every layer run it as a real process instead of imitating one.
//
// The one idea: how it misbehaves is its first argument, and when is up to the
// test: the handshake is always sound, and a fault happens when the tool "go" is
// called. Several behaviours are joined with "+" ("crlf+noise").
//
//	fakeserver BEHAVIOUR [FLAGS] [anything else, shown by the tool "args"]
//	  -tools N      offer N more tools t0000…, 50 a page
//	  -pid-file F   append the process id of this process and of every grandchild, a line each
//	  -name NAME    the server's name (fakeserver)
//
// Behaviours from the start:
//
//	polite          nothing odd
//	bom, crlf       every line starts with a byte order mark, ends with CRLF
//	blank           blank lines between messages
//	noise           a banner of log lines before the handshake and before every answer of "go"
//	noise-flood     log lines for ever, from the start
//	chatty          unknown notifications before and after the handshake; answers notifications with an error without id
//	string-ids      answers our id 3 as "3"; float-ids as 3.0
//	no-read         stops reading stdin once it is initialized
//	ignores-eof     lives on after stdin has ended, and after SIGTERM
//	odd-tools       nine good tools and the odd ones of case C38, one of them null
//	dup-tools       lists "search" twice with different schemas
//	changing-prompts  the tool "change" changes the prompt too
//	endless-pages   every page of tools/list names a next one
//	stderr-start    2 MiB of stderr without a line feed before the handshake
//	old             speaks protocol version 2024-11-05
//	bad-version     answers initialize with a version that nobody knows
//	no-handshake    reads and never answers, not even initialize
//	fails           exits with status 3 before the handshake
//	spills          writes its environment to stderr in many dresses, before anything else and at "go"
//	tells           refuses initialize with an error that holds its environment
//
// Behaviours of the tool "go" (without one of them it answers "ok"):
//
//	endless         the letter A for ever
//	endless-string  an answer whose one string never ends
//	endless-stderr  letters on stderr for ever; the call is answered
//	stderr-burst    256 KiB of stderr, then the answer
//	malformed       a cut line of JSON
//	notrpc          {"hello":"world"}
//	trailing        an answer with junk behind it
//	badutf8         an answer with C3 28 in a string
//	dupkeys         an answer with two ids
//	batch           an answer inside an array
//	pretty          an answer over several lines
//	split           an answer one byte a write
//	exit-mid-call   exits with status 7
//	cut-exit        half an answer, then exit with status 1
//	unterminated    an answer without line feed, then exit with status 0
//	answers-then-exit  collects 200 calls, answers all and exits at once
//	closes-stdout   closes stdout and lives on
//	closes-stdin    answers, closes stdin and lives on
//	deaf            never answers
//	forks           starts a grandchild that holds stdout, and answers with its pid
//	setsid          the same in a session of its own (not on Windows)
//	second-answer   two answers to one id
//	null-id         an error with a null id, then the answer
//	unknown-id      an answer to an id that was never used, then the answer
//	out-of-order    collects calls until "count" (argument, 2) are there, answers the last first
//	late            answers only when it is cancelled
//	ask-flood       pings for ever without reading the answers
//
// Tools of every behaviour: go; echo (params, byte for byte, as
// structuredContent.params); env (its environment); args (os.Args); pid; cwd; slow
// {ms}; progress {steps}; big {bytes}; ask {method, params} (asks the client, gives
// back the answer); take-back {method, ms} (asks, cancels its question); log {n} (n log messages, then the answer); change (rewrites the
// description of "echo" and sends list_changed); fail (a JSON-RPC error with data);
// hang (never answers). There are also one prompt, one resource, one
// resource template, completion, logging and subscriptions.
//
// It knows nothing of Sallyport and imports none of it. Only tests use it.
package fakeserver
