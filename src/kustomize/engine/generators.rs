//! Runs `configMapGenerator`, `secretGenerator`, `helmCharts` and `generators`.
//!
//! Source: `runGenerators` in kustomize's `api/internal/target/kusttarget.go`.

use super::accumulator::Accumulator;
use super::generate::{self, BadPair, Made, Pairs};
use super::lost::Lost;
use super::resource::Resource;
use super::run::Run;
use super::stop::{Cause, Step, Stop};
use super::target::Target;
use crate::admission::FieldPath;
use crate::kustomize::file::{Generator, GeneratorOptions};
use crate::kustomize::finding::Site;
use crate::kustomize::rules::{kz015, kz016};

/// The position at which errors about a generator are reported. If an entry of the kustomization file configures the
/// generator, this is the entry or one of its fields. If an object configures the generator, such as a
/// `ConfigMapGenerator`, this is the object.
pub(super) struct Spot<'t> {
    target: &'t Target<'t>,
    /// The path of the entry in the kustomization file, such as `configMapGenerator[0]`. `None` if an object configures
    /// the generator.
    field: Option<FieldPath>,
    site: Site,
}

impl<'t> Spot<'t> {
    /// Creates the error position for a generator that is configured by an entry of the kustomization file. `list` is
    /// the name of the list with this entry, such as `configMapGenerator`, and `index` is the index of the entry.
    pub(super) fn of_entry(target: &'t Target<'t>, list: &str, index: usize) -> Self {
        let field = FieldPath::of([list]).index(index);
        Self { target, site: target.site(field.clone()), field: Some(field) }
    }

    /// Creates the error position for a generator that is configured by an object, such as a `ConfigMapGenerator`. All
    /// errors of the generator are reported at `site`, the position of this object.
    pub(super) fn of_object(target: &'t Target<'t>, site: Site) -> Self {
        Self { target, field: None, site }
    }

    fn part(&self, list: &str, index: Option<usize>) -> Site {
        let Some(field) = &self.field else { return self.site.clone() };
        let field = field.key(list);
        self.target.site(index.map_or_else(|| field.clone(), |index| field.index(index)))
    }
}

impl Run<'_> {
    /// Runs all generators of a kustomization, and adds the generated objects to `acc`.
    ///
    /// # Errors
    ///
    /// Always fails if a limit is exceeded. If the build stops at its first error, also fails if a generator is
    /// invalid, if it cannot run, or if its object cannot be added.
    pub(super) fn generators(&mut self, target: &Target<'_>, acc: &mut Accumulator) -> Step<()> {
        let kustomization = &target.file.kustomization;
        self.charts(target, acc)?;
        let plugins = self.plugin_generators(target, &mut acc.map.lost)?;
        acc.map.scope = self.scope();
        let lists = [
            ("configMapGenerator", Made::ConfigMap, &kustomization.config_map_generator),
            ("secretGenerator", Made::Secret, &kustomization.secret_generator),
        ];
        for (list, made, generators) in lists {
            for (index, generator) in generators.iter().enumerate() {
                let spot = Spot::of_entry(target, list, index);
                let all = kustomization.generator_options.as_ref();
                let options = generate::merged_options(generator.options.as_ref(), all);
                let note = target.note.as_ref().map(|note| note.built_in(target.file.path.name(), made.generator()));
                let generated = self.generated(&spot, made, generator, &options);
                let generated = generated.map(|resource| Resource { source: note, ..resource });
                self.add_generated(acc, generated, &spot.site)?;
            }
        }
        for plugin in plugins {
            let site = plugin.site.clone();
            let generated = self.generated_by(target, &plugin);
            self.add_generated(acc, generated, &site)?;
        }
        Ok(())
    }

    fn charts(&mut self, target: &Target<'_>, acc: &mut Accumulator) -> Step<()> {
        let kustomization = &target.file.kustomization;
        let lists = [
            ("helmCharts", &kustomization.helm_charts),
            ("helmChartInflationGenerator", &kustomization.helm_chart_inflation_generator),
        ];
        for (list, charts) in lists.into_iter().filter(|(_, charts)| !charts.is_empty()) {
            self.adds(|| vec![format!("{} Helm charts", charts.len())]);
            let stop = self.helm(target.site(FieldPath::of([list])));
            self.recover(&mut acc.map.lost, Lost::Objects, Err::<(), _>(stop))?;
        }
        Ok(())
    }

    /// Returns the error of a build step that needs Helm charts. If Helm is enabled, the error says that the result of
    /// the step is unknown, because Portcullis does not render Helm charts. Otherwise, it is the error with which
    /// kustomize fails.
    pub(super) fn helm(&self, site: Site) -> Stop {
        match self.options.helm {
            true => Stop::unknown_by(Cause::Helm, site, "Helm charts are not inflated here"),
            false => Stop::refused(kz015::helm(site)),
        }
    }

    fn add_generated(&mut self, acc: &mut Accumulator, generated: Step<Resource>, site: &Site) -> Step<()> {
        let added = generated.and_then(|resource| {
            self.afford(std::slice::from_ref(&resource), site)?;
            let words = || vec![format!("{} ({})", resource.id(&acc.map.scope).words(), resource.behavior.word())];
            self.adds(words);
            self.absorb(&mut acc.map, resource, site)
        });
        self.recover(&mut acc.map.lost, Lost::Objects, added)?;
        self.observe(&acc.map, "generated", site);
        Ok(())
    }

    /// Creates the object of a generator.
    ///
    /// # Errors
    ///
    /// - If the generator has no name, or if two of its data entries have the same key.
    /// - If the generator creates a ConfigMap, and a label or annotation has an empty key.
    /// - If a literal, file or environment file is invalid or cannot be read.
    pub(super) fn generated(
        &self,
        spot: &Spot<'_>,
        made: Made,
        generator: &Generator,
        options: &GeneratorOptions,
    ) -> Step<Resource> {
        if generator.name.is_empty() {
            return Err(Stop::refused(kz016::missing_name(spot.site.clone(), made.kind())));
        }
        let mut pairs = Pairs::default();
        let mut last = None;
        self.pairs(spot, generator, &mut pairs, &mut last)?;
        let nameless = [("labels", &options.labels), ("annotations", &options.annotations)];
        let nameless = nameless.into_iter().find(|(_, map)| map.contains_key(""));
        match (last, nameless) {
            (Some(stop), _) => Err(stop),
            (None, Some((field, _))) if made == Made::ConfigMap => {
                Err(Stop::refused(kz016::empty_key(spot.site.clone(), made.kind(), field)))
            }
            (None, _) => Ok(generate::object(made, generator, options, pairs, spot.target.origin(&spot.site))),
        }
    }

    /// Adds the literals, files and environment files of a generator to `pairs`. Continues after an error, to find
    /// further errors in the same generator. Writes the last error into `last`, and the caller must return it. Passes
    /// all earlier errors to [`Run::recover`], which records them.
    ///
    /// # Errors
    ///
    /// Returns an earlier error if [`Run::recover`] returns it instead of recording it.
    fn pairs(&self, spot: &Spot<'_>, generator: &Generator, pairs: &mut Pairs, last: &mut Option<Stop>) -> Step<()> {
        let mut gather = |gathered: Step<()>| -> Step<()> {
            let Err(stop) = gathered else { return Ok(()) };
            match last.replace(stop) {
                Some(before) => self.recover(&mut Lost::Nothing, Lost::Nothing, Err::<(), _>(before)).map(drop),
                None => Ok(()),
            }
        };
        let bad = |bad: BadPair, site: Site| bad.at(site, &generator.name);
        let env = Some((&generator.env, spot.part("env", None)));
        let envs = generator.envs.iter().enumerate().map(|(at, text)| (text, spot.part("envs", Some(at))));
        for (entry, site) in envs.chain(env.filter(|(env, _)| !env.is_empty())) {
            let loaded = self.load(&spot.target.loader, entry, &site);
            gather(loaded.and_then(|(_, bytes)| pairs.env_file(&bytes).map_err(|pair| bad(pair, site))))?;
        }
        for (at, literal) in generator.literals.iter().enumerate() {
            gather(pairs.literal(literal).map_err(|pair| bad(pair, spot.part("literals", Some(at)))))?;
        }
        for (at, source) in generator.files.iter().enumerate() {
            let site = spot.part("files", Some(at));
            let file = generate::file_source(source).map_err(|pair| bad(pair, site.clone()));
            gather(file.and_then(|(key, path)| {
                let (_, bytes) = self.load(&spot.target.loader, path, &site)?;
                pairs.file(key, &bytes).map_err(|pair| bad(pair, site))
            }))?;
        }
        Ok(())
    }
}

impl BadPair {
    /// Converts an invalid literal or file of a generator to an error at position `site`. `name` is the name of the
    /// generated object.
    fn at(self, site: Site, name: &str) -> Stop {
        Stop::refused(match self {
            Self::Repeated(key) => kz016::duplicate_key(site, name, &key),
            Self::Literal(text) => kz016::invalid_literal(site, &text),
            Self::Source(text) => kz016::invalid_source(site, &text),
            Self::Encoding(line) => kz016::invalid_encoding(site, line),
        })
    }
}
