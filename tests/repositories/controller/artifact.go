package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// artifacts are the artifacts of sources, by folder and `spec.ignore`.
type artifacts struct {
	folder string
	known  map[string]string
}

func newArtifacts() *artifacts {
	folder, err := os.MkdirTemp("", "portcullis-artifacts-")
	check(err)
	folder, err = filepath.EvalSymlinks(folder)
	check(err)
	return &artifacts{folder: folder, known: map[string]string{}}
}

func (artifacts *artifacts) remove() {
	check(os.RemoveAll(artifacts.folder))
}

// of returns a folder with the files that source-controller puts into the artifact of a checkout.
func (artifacts *artifacts) of(top string, ignore *string) string {
	key := top
	if ignore != nil {
		key += "\n" + *ignore
	}
	if folder, ok := artifacts.known[key]; ok {
		return folder
	}
	folder, err := os.MkdirTemp(artifacts.folder, "")
	check(err)
	copyArtifact(top, folder, matcher(top, ignore))
	artifacts.known[key] = folder
	return folder
}

// matcher returns the patterns of files that are not in the artifact (gitrepository_controller.go and SourceIgnoreFilter).
func matcher(top string, ignore *string) gitignore.Matcher {
	domain := strings.Split(top, string(filepath.Separator))
	patterns, err := sourceignore.LoadIgnorePatterns(top, domain)
	check(err)
	if ignore != nil {
		patterns = append(patterns, sourceignore.ReadPatterns(strings.NewReader(*ignore), domain)...)
	}
	if len(patterns) == 0 {
		return sourceignore.NewDefaultMatcher(patterns, domain)
	}
	return sourceignore.NewMatcher(append(sourceignore.VCSPatterns(domain), patterns...))
}

// copyArtifact copies files and folders; nothing else is in an archive (storage.Archive).
func copyArtifact(top, target string, matcher gitignore.Matcher) {
	check(filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		check(err)
		isRegular := entry.Type().IsRegular()
		if !isRegular && !entry.IsDir() || matcher.Match(strings.Split(path, string(filepath.Separator)), entry.IsDir()) {
			return nil
		}
		if entry.IsDir() && entry.Name() == ".git" {
			return filepath.SkipDir
		}
		to := filepath.Join(target, strings.TrimPrefix(path, top))
		if entry.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		check(os.MkdirAll(filepath.Dir(to), 0o755))
		data, err := os.ReadFile(path)
		check(err)
		return os.WriteFile(to, data, 0o644)
	}))
}
