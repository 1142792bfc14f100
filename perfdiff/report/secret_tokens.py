"""Tokens that their issuers made to be recognised, by the prefixes that each of them documents.

Which issuers to know was held against the rules of gitleaks (github.com/gitleaks/gitleaks, config/gitleaks.toml of July 2026, MIT), the
maintained list. `detect-secrets`, the library for Python, had its last release in May 2024, and asks the network whether a secret works.

There is no search for text that looks drawn at random: commits, digests, test data and mangled names do, too.
"""

from __future__ import annotations

import re

# Behind its prefix each token has at least so many letters of its alphabet; shorter ones are words of a program. Where names of a program
# and of styles could go on so, with `_` or `-`, one of the letters is a digit.
TOKEN = re.compile(
    r"""(?:\b|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))(?:
      A3-[A-Z0-9]{6}-[A-Z0-9-]{20,} | ops_eyJ[\w+/]{20,}                                      # 1Password
    | AGE-SECRET-KEY-1[A-Z0-9]{50,}                                                           # age
    | (?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b | ABSK[\w+/]{100,}                    # AWS
    | LTAI[A-Za-z0-9]{16,}                                                                    # Alibaba Cloud
    | AKCp[A-Za-z0-9]{60,} | cmVmd[A-Za-z0-9]{59}                                             # Artifactory
    | ATATT3[\w=-]{40,}                                                                       # Atlassian
    | [\w~.]{3}\dQ~[\w~.-]{31,34}                                                             # Azure
    | dapi[a-f0-9]{32}                                                                        # Databricks
    | do[opr]_v1_[a-f0-9]{40,}                                                                # DigitalOcean
    | dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}                                             # Doppler
    | dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{40,}                                               # Dynatrace
    | fo1_[\w-]{40,} | fm[12][ar]?_[\w+/=]{60,}                                               # Fly.io
    | AIza[\w-]{35} | ya29\.(?=[\w-]{0,60}\d)[\w-]{20,} | GOCSPX-(?=[\w-]{0,60}\d)[\w-]{20,}  # Google
    | gh[pousr]_[A-Za-z0-9]{30,} | github_pat_(?=\w{0,60}\d)\w{20,}                           # GitHub
    | gl(?:pat|cbt|dt|ffct|ft|imt|agent|oas|ptt|rt|soat)-(?=[\w.-]{0,60}\d)[\w.-]{15,}        # GitLab
    | GR1348941[\w-]{20,}                                                                     # GitLab
    | glc_[A-Za-z0-9+/=]{30,} | glsa_[A-Za-z0-9]{30,}_[a-fA-F0-9]{8}                          # Grafana
    | HRKU-(?=[\w-]{0,60}\d)[\w-]{40,}                                                        # Heroku
    | hv[bsr]\.(?=[\w-]{0,60}\d)[\w-]{20,} | [A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}            # HashiCorp
    | hf_[A-Za-z]{30,} | api_org_[A-Za-z]{30,}                                                # Hugging Face
    | lin_api_[A-Za-z0-9]{30,}                                                                # Linear
    | npm_[A-Za-z0-9]{30,}                                                                    # npm
    | ntn_[A-Za-z0-9]{40,}                                                                    # Notion
    | sk-(?=[\w-]{0,200}\d)(?=[\w-]{0,60}[A-Za-z0-9]{16})[\w-]{20,}                           # OpenAI, Anthropic
    | pplx-[A-Za-z0-9]{40,} | gsk_[A-Za-z0-9]{40,}                                            # Perplexity, Groq
    | sha256~[\w-]{43}                                                                        # OpenShift
    | pscale_(?:tkn|oauth|pw)_(?=[\w=.-]{0,60}\d)[\w=.-]{30,}                                 # PlanetScale
    | PMAK-[a-f0-9]{24}-[a-f0-9]{30,}                                                         # Postman
    | pul-[a-f0-9]{40}                                                                        # Pulumi
    | pypi-(?=[\w-]{0,100}\d)[\w-]{50,} | rubygems_[a-f0-9]{40,}                              # package registries
    | dckr_pat_(?=[\w-]{0,60}\d)[\w-]{20,}                                                    # package registries
    | SG\.[\w=-]{16,64}+\.[\w=-]{30,} | xkeysib-[a-f0-9]{40,}                                 # SendGrid, Brevo
    | sntry[su]_(?=[\w+/=]{0,60}\d)[\w+/=]{30,}                                               # Sentry
    | shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}                                                      # Shopify
    | xox[a-z](?:\.xox[bp])?-(?=[\w-]{0,60}\d)[\w-]{10,} | xapp-\d-[\w-]{20,}                 # Slack
    | hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+]{20,}                           # Slack
    | sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}                                      # Sourcegraph
    | EAAA[\w-]{50,} | sq0(?:atp|csp)-[\w-]{20,}                                              # Square
    | [sr]k_(?:test|live|prod)_(?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{10,}                           # Stripe
    | whsec_(?=[A-Za-z0-9+/=]{0,60}\d)[A-Za-z0-9+/=]{20,}                                     # Stripe
    | SK[0-9a-f]{32}\b                                                                        # Twilio
    | AC[0-9a-f]{32}:[0-9a-f]{32}\b                                                           # Twilio, user and password
    | (?:bot)?\d{5,16}:A[\w-]{34}(?![\w-])                                                    # Telegram
    | [MNO][A-Za-z0-9]{23,27}\.[\w-]{6}\.[\w-]{27,45} | mfa\.[\w-]{80,}                       # Discord
    | (?:discord(?:app)?\.com|discord\.gg)/api/(?:v\d+/)?webhooks/\d{15,}/[\w-]{30,}          # Discord
    | webhook\.office\.com/webhookb?2?/[\w@/-]{30,}                                           # Teams
    | key-[0-9a-z]{32}\b | [0-9a-f]{32}-us\d{1,2}\b | md-(?=[\w-]{0,21}\d)[\w-]{22}\b         # Mailgun, Mailchimp, Mandrill
    | [0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}\b                                                  # Mailgun
    | EAA[A-Z][A-Za-z0-9]{60,} | A{22}[B-Za-z0-9%][A-Za-z0-9%]{40,}                           # Facebook and WhatsApp, Twitter
    | pat-(?:na|eu)1-[0-9a-f-]{36} | NRAK-[A-Z0-9]{27} | figd_(?=[\w-]{0,60}\d)[\w-]{30,}     # HubSpot, New Relic, Figma
    | pat[A-Za-z0-9]{14}\.[a-f0-9]{64} | sl\.[\w-]{100,} | ATBB[\w=]{28,}                     # Airtable, Dropbox, Bitbucket
    | CCIPAT_(?=\w{0,60}\d)\w{20,} | sbp_[a-f0-9]{40} | nfp_[A-Za-z0-9]{30,}                  # CircleCI, Supabase, Netlify
    | r8_[A-Za-z0-9]{30,} | xai-[A-Za-z0-9]{40,}                                              # Replicate, xAI
    | 1//0[\w-]{40,} | oy2[a-z0-9]{43} | cio[A-Za-z0-9]{32}\b | CFPAT-[\w-]{40,}              # Google, NuGet, crates.io, Contentful
    | rzp_(?:live|test)_(?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{10,}                                  # payments
    | FLWSECK(?:_TEST)?-(?=\w{0,60}\d)\w{12,} | shippo_(?:live|test)_[a-f0-9]{40}             # payments
    | tskey-(?=[\w-]{0,60}\d)[\w-]{20,}                                                       # Tailscale
    )""",
    re.VERBOSE,
)
