-- Documents that count only while their seal verifies: approvals, decisions,
-- clients, settings. body is JSON, seal an HMAC made by whoever owns the kind.
CREATE TABLE sealed (
	kind  TEXT NOT NULL,
	id    TEXT NOT NULL,
	body  BLOB NOT NULL,
	seal  BLOB NOT NULL,
	epoch INTEGER NOT NULL,
	PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

-- What happened to each decision, in order; only ever appended to.
CREATE TABLE decision_journal (
	n        INTEGER PRIMARY KEY AUTOINCREMENT,
	decision TEXT NOT NULL,
	at       TEXT NOT NULL,
	event    TEXT NOT NULL,
	by       TEXT NOT NULL,
	detail   TEXT NOT NULL
) STRICT;
CREATE INDEX decision_journal_decision ON decision_journal (decision, n);

CREATE TABLE meta (
	key   TEXT PRIMARY KEY,
	value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- spec/audit.md 1. hash chains each record to the one before it. The indexes are
-- partial where most records have nothing to find: a call that went well has no
-- reason, and is found by plugin or client.
CREATE TABLE audit (
	seq         INTEGER PRIMARY KEY,
	at          TEXT NOT NULL,
	actor       TEXT NOT NULL,
	via         TEXT NOT NULL,
	action      TEXT NOT NULL,
	plugin      TEXT NOT NULL,
	version     TEXT NOT NULL,
	binding     TEXT NOT NULL,
	target      TEXT NOT NULL,
	result      TEXT NOT NULL,
	reason      TEXT NOT NULL,
	identity    TEXT NOT NULL,
	decision    TEXT NOT NULL,
	client      TEXT NOT NULL,
	count       INTEGER NOT NULL,
	duration_ms INTEGER NOT NULL,
	prev        TEXT NOT NULL,
	hash        TEXT NOT NULL
) STRICT;
CREATE INDEX audit_plugin ON audit (plugin, seq);
CREATE INDEX audit_client ON audit (client, seq) WHERE client <> '';
CREATE INDEX audit_action ON audit (action, seq) WHERE action <> 'call';
CREATE INDEX audit_result ON audit (result, seq) WHERE result <> 'ok';
CREATE INDEX audit_reason ON audit (reason, seq) WHERE reason <> '';
