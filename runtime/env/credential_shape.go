package env

import (
	"regexp"
	"strings"
)

// shape is how a kind of credential looks wherever it stands: a prefix that its
// issuer gives it, and then so many characters of an alphabet.
type shape struct {
	prefix   string
	alphabet string
	least    int
	most     int // 0: no limit
	kind     string
	secret   string // a name for the keyring
}

// Alphabets.
const (
	digits  = "0123456789"
	hexes   = digits + "abcdef"
	upper   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	base62  = digits + upper + "abcdefghijklmnopqrstuvwxyz"
	word    = base62 + "_"
	dashed  = word + "-"
	dotted  = dashed + "."
	padding = dotted + "+/="
)

// shapes are in the order in which they are tried: the longer prefix first. Those
// of a short prefix also have to look random.
var shapes = []shape{
	{"sk-ant-", dashed, 20, 0, "an Anthropic key", "ANTHROPIC_API_KEY"},
	{"sk-proj-", dashed, 20, 0, "an OpenAI key", "OPENAI_API_KEY"},
	{"sk-svcacct-", dashed, 20, 0, "an OpenAI key", "OPENAI_API_KEY"},
	{"sk-or-v1-", hexes, 32, 0, "an OpenRouter key", "OPENROUTER_API_KEY"},
	{"sk-lf-", dashed, 20, 0, "a Langfuse key", "LANGFUSE_SECRET_KEY"},
	{"sk-", dashed, 16, 0, "an API key of OpenAI's form", "OPENAI_API_KEY"},
	{"github_pat_", word, 20, 0, "a GitHub token", "GITHUB_TOKEN"},
	{"ghp_", base62, 20, 0, "a GitHub token", "GITHUB_TOKEN"},
	{"gho_", base62, 20, 0, "a GitHub token", "GITHUB_TOKEN"},
	{"ghu_", base62, 20, 0, "a GitHub token", "GITHUB_TOKEN"},
	{"ghs_", dotted, 20, 0, "a GitHub token", "GITHUB_TOKEN"},
	{"ghr_", base62, 20, 0, "a GitHub token", "GITHUB_TOKEN"},
	{"glpat-", dotted, 16, 0, "a GitLab token", "GITLAB_TOKEN"},
	{"gldt-", dashed, 16, 0, "a GitLab token", "GITLAB_TOKEN"},
	{"glrt-", dotted, 16, 0, "a GitLab token", "GITLAB_TOKEN"},
	{"glptt-", dashed, 16, 0, "a GitLab token", "GITLAB_TOKEN"},
	{"glcbt-", dashed, 16, 0, "a GitLab token", "GITLAB_TOKEN"},
	{"gloas-", dashed, 16, 0, "a GitLab token", "GITLAB_TOKEN"},
	{"glagent-", dashed, 16, 0, "a GitLab token", "GITLAB_TOKEN"},
	{"xoxa-", dashed, 10, 0, "a Slack token", "SLACK_TOKEN"},
	{"xoxb-", dashed, 10, 0, "a Slack token", "SLACK_BOT_TOKEN"},
	{"xoxc-", dashed, 10, 0, "a Slack token", "SLACK_TOKEN"},
	{"xoxd-", padding + "%", 10, 0, "a Slack token", "SLACK_TOKEN"},
	{"xoxe-", dashed, 10, 0, "a Slack token", "SLACK_TOKEN"},
	{"xoxe.", dotted, 10, 0, "a Slack token", "SLACK_TOKEN"},
	{"xoxp-", dashed, 10, 0, "a Slack token", "SLACK_TOKEN"},
	{"xoxr-", dashed, 10, 0, "a Slack token", "SLACK_TOKEN"},
	{"xoxs-", dashed, 10, 0, "a Slack token", "SLACK_TOKEN"},
	{"xapp-", dashed, 16, 0, "a Slack token", "SLACK_APP_TOKEN"},
	{"AKIA", upper + digits, 16, 16, "an AWS access key", "AWS_ACCESS_KEY_ID"},
	{"ASIA", upper + digits, 16, 16, "an AWS access key", "AWS_ACCESS_KEY_ID"},
	{"ABSK", padding, 60, 0, "an AWS Bedrock key", "AWS_BEARER_TOKEN_BEDROCK"},
	{"AIza", dashed, 35, 0, "a Google API key", "GOOGLE_API_KEY"},
	{"ya29.", dashed, 20, 0, "a Google access token", "GOOGLE_ACCESS_TOKEN"},
	{"GOCSPX-", dashed, 20, 0, "a Google client secret", "GOOGLE_CLIENT_SECRET"},
	{"npm_", base62, 30, 0, "an npm token", "NPM_TOKEN"},
	{"pypi-", dashed, 50, 0, "a PyPI token", "PYPI_TOKEN"},
	{"hf_", base62, 30, 0, "a Hugging Face token", "HF_TOKEN"},
	{"sk_live_", base62, 16, 0, "a Stripe key", "STRIPE_API_KEY"},
	{"sk_test_", base62, 16, 0, "a Stripe key", "STRIPE_API_KEY"},
	{"rk_live_", base62, 16, 0, "a Stripe key", "STRIPE_API_KEY"},
	{"rk_test_", base62, 16, 0, "a Stripe key", "STRIPE_API_KEY"},
	{"whsec_", padding, 20, 0, "a webhook's signing secret", "WEBHOOK_SECRET"},
	{"ntn_", base62, 30, 0, "a Notion token", "NOTION_TOKEN"},
	{"secret_", base62, 40, 0, "a Notion token", "NOTION_TOKEN"},
	{"lin_api_", base62, 30, 0, "a Linear key", "LINEAR_API_KEY"},
	{"lin_oauth_", base62, 30, 0, "a Linear token", "LINEAR_TOKEN"},
	{"figd_", dashed, 30, 0, "a Figma token", "FIGMA_TOKEN"},
	{"figu_", dashed, 30, 0, "a Figma token", "FIGMA_TOKEN"},
	{"sbp_", hexes, 40, 0, "a Supabase token", "SUPABASE_ACCESS_TOKEN"},
	{"sb_secret_", dashed, 20, 0, "a Supabase key", "SUPABASE_SECRET_KEY"},
	{"dop_v1_", hexes, 60, 0, "a DigitalOcean token", "DIGITALOCEAN_TOKEN"},
	{"doo_v1_", hexes, 60, 0, "a DigitalOcean token", "DIGITALOCEAN_TOKEN"},
	{"dor_v1_", hexes, 60, 0, "a DigitalOcean token", "DIGITALOCEAN_TOKEN"},
	{"dapi", hexes, 32, 0, "a Databricks token", "DATABRICKS_TOKEN"},
	{"AGE-SECRET-KEY-1", upper + digits, 50, 0, "an age key", "AGE_KEY"},
	{"SK", hexes, 32, 32, "a Twilio key", "TWILIO_API_KEY"},
	{"gsk_", base62, 40, 0, "a Groq key", "GROQ_API_KEY"},
	{"xai-", base62, 40, 0, "an xAI key", "XAI_API_KEY"},
	{"pplx-", base62, 40, 0, "a Perplexity key", "PERPLEXITY_API_KEY"},
	{"r8_", base62, 30, 0, "a Replicate token", "REPLICATE_API_TOKEN"},
	{"tvly-", dashed, 20, 0, "a Tavily key", "TAVILY_API_KEY"},
	{"fc-", hexes, 32, 0, "a Firecrawl key", "FIRECRAWL_API_KEY"},
	{"ATATT3", padding, 40, 0, "an Atlassian token", "ATLASSIAN_API_TOKEN"},
	{"sntrys_", padding, 40, 0, "a Sentry token", "SENTRY_AUTH_TOKEN"},
	{"sntryu_", hexes, 40, 0, "a Sentry token", "SENTRY_AUTH_TOKEN"},
	{"glsa_", word, 30, 0, "a Grafana token", "GRAFANA_TOKEN"},
	{"glc_", padding, 30, 0, "a Grafana token", "GRAFANA_TOKEN"},
	{"hvs.", dashed, 20, 0, "a Vault token", "VAULT_TOKEN"},
	{"dp.pt.", base62, 30, 0, "a Doppler token", "DOPPLER_TOKEN"},
	{"dp.st.", dotted, 30, 0, "a Doppler token", "DOPPLER_TOKEN"},
	{"ops_eyJ", padding, 40, 0, "a 1Password token", "OP_SERVICE_ACCOUNT_TOKEN"},
	{"PMAK-", hexes + "-", 40, 0, "a Postman key", "POSTMAN_API_KEY"},
	{"shpat_", hexes, 30, 0, "a Shopify token", "SHOPIFY_ACCESS_TOKEN"},
	{"NRAK-", upper + digits, 20, 0, "a New Relic key", "NEW_RELIC_API_KEY"},
	{"dckr_pat_", dashed, 20, 0, "a Docker token", "DOCKER_TOKEN"},
	{"tskey-", dashed, 20, 0, "a Tailscale key", "TAILSCALE_KEY"},
	{"pul-", hexes, 40, 0, "a Pulumi token", "PULUMI_ACCESS_TOKEN"},
	{"pscale_tkn_", dotted, 30, 0, "a PlanetScale token", "PLANETSCALE_TOKEN"},
	{"pscale_pw_", dotted, 30, 0, "a PlanetScale password", "PLANETSCALE_PASSWORD"},
	{"apify_api_", base62, 30, 0, "an Apify token", "APIFY_TOKEN"},
	{"key-", hexes, 32, 32, "a Mailgun key", "MAILGUN_API_KEY"},
	{"pat-na1-", hexes + "-", 36, 0, "a HubSpot token", "HUBSPOT_TOKEN"},
	{"pat-eu1-", hexes + "-", 36, 0, "a HubSpot token", "HUBSPOT_TOKEN"},
}

// form is a shape that a prefix does not tell. hint is a text that every match
// holds, so that most values cost one search.
type form struct {
	hint    string
	re      *regexp.Regexp
	kind    string
	secret  string
	certain bool
}

var forms = []form{
	{"PRIVATE KEY", regexp.MustCompile(`-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY( BLOCK)?-----`), "a private key", "PRIVATE_KEY", true},
	{"eyJ", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.`), "a JSON web token", "TOKEN", true},
	{"SG.", regexp.MustCompile(`\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}`), "a SendGrid key", "SENDGRID_API_KEY", true},
	{":AA", regexp.MustCompile(`\b[0-9]{8,10}:AA[A-Za-z0-9_-]{32,34}\b`), "a Telegram bot's token", "TELEGRAM_BOT_TOKEN", true},
	{".", regexp.MustCompile(`\b[MNO][A-Za-z0-9]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}\b`), "a Discord bot's token", "DISCORD_TOKEN", true},
	{"hooks.slack.com/", regexp.MustCompile(`hooks\.slack\.com/(services|workflows|triggers)/[A-Za-z0-9]+/[A-Za-z0-9/]{10,}`), "a Slack webhook", "SLACK_WEBHOOK_URL", true},
	{"/api/webhooks/", regexp.MustCompile(`discord(app)?\.com/api/webhooks/[0-9]{10,}/[A-Za-z0-9_-]{20,}`), "a Discord webhook", "DISCORD_WEBHOOK_URL", true},
	{".atlasv1.", regexp.MustCompile(`\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}`), "a Terraform token", "TF_TOKEN", true},
	{"AccountKey=", regexp.MustCompile(`\bAccountKey=[A-Za-z0-9+/]{40,}={0,2}`), "an Azure connection string", "AZURE_CONNECTION_STRING", true},
	{"SharedAccessKey=", regexp.MustCompile(`\bSharedAccessKey=[A-Za-z0-9+/]{30,}={0,2}`), "an Azure connection string", "AZURE_CONNECTION_STRING", true},
	{"sig=", regexp.MustCompile(`[?&]sig=[A-Za-z0-9%+/]{40,}`), "an Azure signature", "AZURE_SAS_TOKEN", true},
	{"://", regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@?#]*:([^/\s@]+)@`), "a password in an address", "", false},
}

// findShape returns the first shape in text.
func findShape(text string) finding {
	var placeholder finding
	keep := func(found finding, match string) bool {
		if found.placeholder = toBeFilled(match); !found.placeholder {
			return true
		}
		placeholder = finding{kind: aPlaceholder, placeholder: true, secret: found.secret}
		return false
	}
	candidates := shapes
	if longestRun(text) < shortestShape {
		candidates = nil
	}
	for _, s := range candidates {
		for match := range s.in(text) {
			if found := (finding{kind: s.kind, certain: true, secret: s.secret}); keep(found, match) {
				return found
			}
		}
	}
	for _, f := range forms {
		if !strings.Contains(text, f.hint) {
			continue
		}
		match := f.re.FindStringSubmatch(text)
		if match == nil {
			continue
		}
		if found := (finding{kind: f.kind, certain: f.certain, secret: f.secret}); f.hint == "PRIVATE KEY" || keep(found, match[len(match)-1]) {
			return found
		}
	}
	if placeholder.kind != "" {
		return placeholder
	}
	return findScheme(text)
}

// findScheme finds "Bearer X" where X is no ordinary word.
func findScheme(text string) finding {
	scheme, credential := SplitScheme(strings.TrimSpace(text))
	word := strings.TrimSpace(credential)
	if scheme == "" || len(word) < 8 || strings.ContainsAny(word, " \t\r\n") || wordy(word) && !strings.ContainsAny(word, digits) || isPlaceholder(word) {
		return finding{}
	}
	return finding{kind: article(strings.ToLower(strings.TrimSpace(scheme))) + " credential", secret: "TOKEN"}
}

// shortestShape is the length of the shortest of shapes.
const shortestShape = 15

// longestRun is the length of the longest run of characters of any alphabet: most
// values have none that is long enough for any shape.
func longestRun(text string) int {
	longest, run := 0, 0
	for i := range len(text) {
		if c := text[i]; isAlnum(c) || strings.IndexByte("_-.+/=%", c) >= 0 {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	return longest
}

func article(noun string) string {
	if strings.IndexByte("aeiou", noun[0]) >= 0 {
		return "an " + noun
	}
	return "a " + noun
}

// toBeFilled reports whether what has a credential's shape was written to be replaced:
// few different characters, or words that say so.
func toBeFilled(match string) bool {
	if len(match) > 256 {
		return false
	}
	var seen [256]bool
	different := 0
	for i := range len(match) {
		if c := match[i]; !seen[c] {
			seen[c], different = true, different+1
		}
	}
	return different <= 4 && len(match) >= 8 || isPlaceholder(match) || strings.HasSuffix(match, "EXAMPLE")
}

// in yields what follows the prefix wherever the shape is in text. No character is
// looked at more often than the shape is long.
func (s shape) in(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for from := 0; ; {
			at := strings.Index(text[from:], s.prefix)
			if at < 0 {
				return
			}
			at += from
			from = at + len(s.prefix)
			if at > 0 && (isAlnum(text[at-1]) || text[at-1] == '_') {
				continue
			}
			end := from
			for end < len(text) && end-from < 512 && strings.IndexByte(s.alphabet, text[end]) >= 0 {
				end++
			}
			body := text[from:end]
			if len(body) < s.least {
				continue
			}
			from = end
			words := wordy(body) && !toBeFilled(body) // sk-learn-with-long-words
			if words || s.most > 0 && len(body) > s.most {
				continue
			}
			if !yield(body) {
				return
			}
		}
	}
}
