package env

import (
	"slices"
	"strings"
)

// wordsOf cuts a name into upper-case words: OPENAI_API_KEY, X-Api-Key, exaApiKey.
// Numbers at the end of a word are no part of it (TOKEN2).
func wordsOf(name string) []string {
	var words []string
	begin := 0
	end := func(at int) {
		if word := strings.TrimRight(name[begin:at], "0123456789"); word != "" {
			words = append(words, strings.ToUpper(word))
		}
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case !isAlnum(c):
			end(i)
			begin = i + 1
		case i > begin && isUpper(c) && (isLower(name[i-1]) || i+1 < len(name) && isUpper(name[i-1]) && isLower(name[i+1])):
			end(i)
			begin = i
		}
	}
	end(len(name))
	return words
}

// credentialWords end the name of a credential.
var credentialWords = map[string]bool{
	"TOKEN": true, "SECRET": true, "PASSWORD": true, "PASSWD": true, "PASSPHRASE": true, "PASSWORT": true, "PASS": true,
	"APIKEY": true, "APITOKEN": true, "ACCESSTOKEN": true, "AUTHTOKEN": true, "ACCESSKEY": true, "SECRETKEY": true, "PRIVATEKEY": true,
	"CLIENTSECRET": true, "CREDENTIAL": true, "CREDENTIALS": true, "CREDS": true, "AUTHORIZATION": true, "COOKIE": true, "BEARER": true, "JWT": true,
}

// keyWords make a KEY behind them a credential.
var keyWords = map[string]bool{
	"API": true, "PRIVATE": true, "SECRET": true, "ACCESS": true, "AUTH": true, "SERVICE": true, "ROLE": true, "SIGNING": true,
	"ENCRYPTION": true, "MASTER": true, "SUBSCRIPTION": true, "APPLICATION": true, "ACCOUNT": true, "DEPLOY": true, "ADMIN": true,
}

// names reports whether a name says that its value is a credential.
func names(words []string) bool {
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	if credentialWords[last] {
		return true
	}
	if len(words) < 2 {
		return false
	}
	return last == "KEY" && keyWords[words[len(words)-2]] || last == "PWD"
}

// tellingWords make a random value a credential, wherever they stand in a name.
var tellingWords = map[string]bool{
	"KEY": true, "KEYS": true, "AUTH": true, "OAUTH": true, "CRED": true, "PASS": true, "PWD": true, "PAT": true, "SESSION": true, "DSN": true,
	"TOKEN": true, "TOKENS": true, "SECRET": true, "SECRETS": true, "PASSWORD": true, "COOKIE": true, "WEBHOOK": true, "SIGNATURE": true,
	"SIG": true, "SALT": true, "PSK": true, "HMAC": true, "LICENSE": true, "PIN": true, "SEED": true, "MNEMONIC": true,
}

// aboutWords end a name that speaks about a credential and does not hold one.
var aboutWords = map[string]bool{
	"FILE": true, "PATH": true, "DIR": true, "FOLDER": true, "URL": true, "URI": true, "HOST": true, "HOSTNAME": true, "ENDPOINT": true,
	"NAME": true, "ID": true, "TYPE": true, "METHOD": true, "MODE": true, "ENABLED": true, "TTL": true, "EXPIRY": true, "ALGORITHM": true,
	"ALG": true, "REGION": true, "PROVIDER": true, "HEADER": true, "VERSION": true, "PREFIX": true, "SUFFIX": true, "ISSUER": true,
	"AUDIENCE": true, "SCOPE": true, "SCOPES": true, "USER": true, "USERNAME": true, "EMAIL": true, "DOMAIN": true, "FINGERPRINT": true,
	"HASH": true, "SHA": true, "DIGEST": true, "COMMIT": true, "CHECKSUM": true, "REVISION": true, "MODEL": true, "STORE": true,
}

// tells reports whether a random value under that name is a credential.
func tells(words []string) bool {
	if len(words) == 0 || slices.Contains(words, "PUBLIC") {
		return false
	}
	if aboutWords[words[len(words)-1]] && !slices.Contains(words, "WEBHOOK") {
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool { return tellingWords[w] })
}

// amountWords make a number under a name an amount: MAX_TOKEN=4096.
var amountWords = map[string]bool{
	"MAX": true, "MIN": true, "NUM": true, "COUNT": true, "LIMIT": true, "SIZE": true, "LENGTH": true, "BUDGET": true, "TIMEOUT": true, "PER": true,
}

// harmless values say that there is no credential, or where it lies.
func harmless(words []string, value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "true", "false", "0", "1", "none", "null", "nil", "undefined", "yes", "no", "on", "off":
		return true
	}
	if isNumber(value) && slices.ContainsFunc(words, func(w string) bool { return amountWords[w] }) {
		return true
	}
	return isPath(value)
}
