module portcullis.dev/e2e-assets/crossplane

go 1.26.0

require github.com/crossplane/crossplane v1.18.0
