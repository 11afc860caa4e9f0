//! Options of a kustomize build: the tool that runs kustomize (such as Flux), the version of kustomize, and the files
//! that a kustomization may load.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use super::file::{Image, Patch, Replica};
use crate::admission::FieldPath;

/// The system that builds a kustomize tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// `kubectl kustomize`, `kubectl apply -k` and `kustomize build` without flags.
    #[default]
    Kubectl,
    /// Flux's kustomize-controller.
    Flux,
    /// Argo CD's repo-server.
    ArgoCd,
    /// Rancher Fleet.
    Fleet,
    /// Project Sveltos.
    Sveltos,
}

impl Profile {
    /// All systems that may build a kustomize tree.
    pub const ALL: [Self; 5] = [Self::Kubectl, Self::Flux, Self::ArgoCd, Self::Fleet, Self::Sveltos];

    /// Returns the name of the profile on the command line and in reports, such as `flux`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kubectl => "kubectl",
            Self::Flux => "flux",
            Self::ArgoCd => "argocd",
            Self::Fleet => "fleet",
            Self::Sveltos => "sveltos",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The error for an option value that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not {allowed}")]
pub struct NotAllowed {
    /// The rejected value.
    pub found: String,
    /// The allowed values, as a text for messages.
    pub allowed: &'static str,
}

impl FromStr for Profile {
    type Err = NotAllowed;

    fn from_str(text: &str) -> Result<Self, NotAllowed> {
        let allowed = "one of kubectl, flux, argocd, fleet, sveltos";
        let found = || NotAllowed { found: text.to_owned(), allowed };
        Self::ALL.into_iter().find(|profile| profile.as_str() == text).ok_or_else(found)
    }
}

/// The restriction on the files that a kustomization may load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Restrictor {
    /// A kustomization may load only files in or below its folder (`LoadRestrictionsRootOnly`).
    RootOnly,
    /// A kustomization may load any file (`LoadRestrictionsNone`).
    None,
}

impl FromStr for Restrictor {
    type Err = NotAllowed;

    fn from_str(text: &str) -> Result<Self, NotAllowed> {
        match text {
            "root-only" | "LoadRestrictionsRootOnly" => Ok(Self::RootOnly),
            "none" | "LoadRestrictionsNone" => Ok(Self::None),
            _ => Err(NotAllowed { found: text.to_owned(), allowed: "one of root-only, none" }),
        }
    }
}

/// A version of kustomize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The major version: `5` of 5.8.1.
    pub major: u16,
    /// The minor version: `8` of 5.8.1.
    pub minor: u16,
    /// The patch version: `1` of 5.8.1.
    pub patch: u16,
}

impl Version {
    /// The kustomize version that Portcullis reproduces by default.
    pub const DEFAULT: Self = Self { major: 5, minor: 8, patch: 1 };
    /// The last version of kustomize that evaluates components before generators. It is also the last version that
    /// accepts an empty file (kustomize#5170).
    pub(super) const NEWEST_WITH_COMPONENTS_FIRST: Self = Self { major: 5, minor: 0, patch: u16::MAX };
    /// The last version of kustomize that does not check entries of a kustomization file for ambiguous paths. Later
    /// versions reject an entry if a path segment contains `..` and other characters, such as `a..b` (kustomize commit
    /// 29bf16c67).
    pub(super) const NEWEST_WITHOUT_AMBIGUITY: Self = Self { major: 5, minor: 8, patch: u16::MAX };
}

impl Default for Version {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = NotAllowed;

    /// Parses a version such as `5.8.1` or `v5.8.1`. `5.8` means the last patch version of 5.8.
    fn from_str(text: &str) -> Result<Self, NotAllowed> {
        let failed = || NotAllowed { found: text.to_owned(), allowed: "a version such as 5.8.1" };
        let mut numbers = text.strip_prefix('v').unwrap_or(text).splitn(3, '.').map(str::parse::<u16>);
        let mut next = || numbers.next().transpose().map_err(|_| failed());
        let (major, minor, patch) = (next()?, next()?, next()?);
        Ok(Self {
            major: major.ok_or_else(failed)?,
            minor: minor.ok_or_else(failed)?,
            patch: patch.unwrap_or(u16::MAX),
        })
    }
}

/// The fields of a Flux Kustomization's spec that change the build.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FluxSpec {
    /// Components to add to the kustomization file (`spec.components`).
    pub components: Vec<String>,
    /// Whether components that do not exist are skipped (`spec.ignoreMissingComponents`).
    pub ignore_missing_components: bool,
    /// Namespace of all objects (`spec.targetNamespace`).
    pub target_namespace: Option<String>,
    /// Prefix for the names of all objects (`spec.namePrefix`).
    pub name_prefix: Option<String>,
    /// Suffix for the names of all objects (`spec.nameSuffix`).
    pub name_suffix: Option<String>,
    /// Patches to add to the kustomization file (`spec.patches`).
    pub patches: Vec<Patch>,
    /// Image replacements to add to the kustomization file (`spec.images`).
    pub images: Vec<Image>,
    /// The values of `spec.buildMetadata`. They replace `buildMetadata` of the kustomization file. If empty, the values
    /// of the file are kept.
    pub build_metadata: Vec<String>,
    /// Variables to substitute after the build (`spec.postBuild`).
    pub post_build: Option<PostBuild>,
    /// Labels and annotations that Flux sets after the build (`spec.commonMetadata`).
    pub common_metadata: CommonMetadata,
}

/// Labels and annotations that Flux sets on all objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CommonMetadata {
    /// The labels that Flux sets on every object, from `spec.commonMetadata.labels`. They replace existing labels with
    /// the same key.
    pub labels: BTreeMap<String, String>,
    /// The annotations that Flux sets on every object, from `spec.commonMetadata.annotations`. They replace existing
    /// annotations with the same key.
    pub annotations: BTreeMap<String, String>,
}

impl FluxSpec {
    /// Returns the approximate memory that the lists and mappings of this struct use, in bytes.
    pub fn weight(&self) -> usize {
        let components = self.components.iter().map(|entry| size_of::<String>() + entry.len());
        let patches = self.patches.iter().map(|patch| size_of::<Patch>() + patch.patch.len());
        let pairs = self.post_build.iter().flat_map(|post_build| &post_build.substitute);
        let images = self.images.iter().map(|image| size_of::<Image>() + image.name.len() + image.new_name.len());
        let CommonMetadata { labels, annotations } = &self.common_metadata;
        components
            .chain(patches)
            .chain(images)
            .chain(
                pairs
                    .chain(labels)
                    .chain(annotations)
                    .map(|(key, value)| 2 * size_of::<String>() + key.len() + value.len()),
            )
            .sum()
    }
}

/// `spec.postBuild` of a Flux Kustomization.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PostBuild {
    /// The variables whose values are known. They come from `substitute`, and from objects in `substituteFrom` whose
    /// content is known.
    pub substitute: BTreeMap<String, String>,
    /// Names of variables with unknown values. Objects in `substituteFrom` contain these variables, but the objects are
    /// encrypted.
    pub unknown: BTreeSet<String>,
    /// Objects in `substituteFrom` whose content is unknown, such as `ConfigMap/cluster-settings`.
    pub from: Vec<String>,
    /// Whether Flux performs the substitution even if no variables are defined (`substituteStrategy: Always`).
    pub always: bool,
    /// Whether an unset variable is replaced with the empty string, as before kustomize-controller 1.9.
    pub is_lenient: bool,
}

impl PostBuild {
    /// Returns whether the variable `name` is unset: neither `substitute` nor an object in `substituteFrom` defines it.
    /// Returns `false` if the content of an object in `substituteFrom` is unknown, because the object may define the
    /// variable.
    pub(super) fn is_unset(&self, name: &str) -> bool {
        self.from.is_empty() && !self.unknown.contains(name) && !self.substitute.contains_key(name)
    }

    /// Returns whether it is known that Flux substitutes variables. This is the case if `substituteStrategy` is
    /// `Always`, or if the name of at least one variable is known. Objects in `substituteFrom` with unknown content do
    /// not count, because they may contain no variables.
    pub(super) fn is_certain(&self) -> bool {
        self.always || !self.substitute.is_empty() || !self.unknown.is_empty()
    }
}

/// The kustomize options of a source in an Argo CD Application. Build variables in the options, such as
/// `$ARGOCD_APP_NAME`, are already replaced with their values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ArgoSpec {
    /// The path of the options in the Application, such as `spec.source.kustomize`. Empty if no option is set.
    pub field: FieldPath,
    /// Prefix for the names of all objects (`namePrefix`).
    pub name_prefix: String,
    /// Suffix for the names of all objects (`nameSuffix`).
    pub name_suffix: String,
    /// Namespace of all objects (`namespace`).
    pub namespace: String,
    /// Replacements of images, in the syntax of `kustomize edit set image`, such as `nginx=mirror/nginx:1.27`. They
    /// come from the option `images`.
    pub images: Vec<String>,
    /// Replica counts by name of the workload (`replicas`).
    pub replicas: Vec<Replica>,
    /// Labels for all objects (`commonLabels`).
    pub common_labels: BTreeMap<String, String>,
    /// Annotations for all objects (`commonAnnotations`).
    pub common_annotations: BTreeMap<String, String>,
    /// Whether `commonLabels` of the Argo CD Application overwrite labels of the kustomization file with the same key.
    /// This is the option `forceCommonLabels`.
    pub force_common_labels: bool,
    /// Whether `commonAnnotations` of the Argo CD Application overwrite `commonAnnotations` of the kustomization file
    /// with the same key. This is the option `forceCommonAnnotations`.
    pub force_common_annotations: bool,
    /// Whether `commonLabels` leave selectors unchanged (`labelWithoutSelector`).
    pub label_without_selector: bool,
    /// Whether `commonLabels` also apply to pod templates (`labelIncludeTemplates`).
    pub label_include_templates: bool,
    /// Patches to add to the kustomization file (`patches`).
    pub patches: Vec<Patch>,
    /// Components to add to the kustomization file (`components`).
    pub components: Vec<String>,
    /// Whether components that do not exist are skipped (`ignoreMissingComponents`).
    pub ignore_missing_components: bool,
}

/// The options of a kustomize build, such as the version of kustomize and the tool that runs it (Flux, for example).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Options {
    /// The system that builds the kustomize tree, such as Flux.
    pub profile: Profile,
    /// The version of kustomize that builds the kustomize tree.
    pub version: Version,
    /// The files that a kustomization may load: only files in or below its folder, or any file.
    pub restrictor: Restrictor,
    /// Whether Helm charts are inflated (`--enable-helm`).
    pub helm: bool,
    /// Whether external plugins run (`--enable-alpha-plugins`).
    pub plugins: bool,
    /// The fields of a Flux Kustomization that change the build. Empty if another tool than Flux runs the build.
    pub flux: FluxSpec,
    /// The kustomize options of an Argo CD Application. Empty if another tool than Argo CD runs the build.
    pub argo: ArgoSpec,
    /// Whether the folder to build may contain a Component. If `false`, rule KZ020 reports such a Component. If `true`,
    /// the build assumes that an unknown kustomization includes the Component, so objects may be missing.
    pub lone_components: bool,
}

impl Options {
    /// Returns the default options of a profile.
    pub fn of(profile: Profile) -> Self {
        let restrictor = match profile {
            Profile::Kubectl | Profile::ArgoCd | Profile::Fleet => Restrictor::RootOnly,
            Profile::Flux | Profile::Sveltos => Restrictor::None,
        };
        Self {
            profile,
            version: Version::DEFAULT,
            restrictor,
            helm: false,
            plugins: false,
            flux: FluxSpec::default(),
            argo: ArgoSpec::default(),
            lone_components: false,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::of(Profile::Kubectl)
    }
}
