//! Options of a build: the system that builds, the version of kustomize, and the files that may be loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use super::file::{Image, Patch, Replica};
use crate::admission::FieldPath;

/// The system that builds a tree.
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
    /// All profiles.
    pub const ALL: [Self; 5] = [Self::Kubectl, Self::Flux, Self::ArgoCd, Self::Fleet, Self::Sveltos];

    /// Returns the name on the command line and in reports.
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

/// The error of a word that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not {allowed}")]
pub struct NotAllowed {
    /// The text.
    pub found: String,
    /// The allowed values.
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

/// Restricts the files that a kustomization may load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Restrictor {
    /// Only files in or below its own folder (`LoadRestrictionsRootOnly`).
    RootOnly,
    /// Any (`LoadRestrictionsNone`).
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
    /// The default version.
    pub const DEFAULT: Self = Self { major: 5, minor: 8, patch: 1 };
    /// The last version in which components run before generators, and an empty file is accepted (kustomize#5170).
    pub(super) const NEWEST_WITH_COMPONENTS_FIRST: Self = Self { major: 5, minor: 0, patch: u16::MAX };
    /// The last version that accepts names with `..` among other characters (kustomize 29bf16c67).
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

/// The parts of a Flux Kustomization's spec that change the tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FluxSpec {
    /// `spec.components`.
    pub components: Vec<String>,
    /// `spec.ignoreMissingComponents`.
    pub ignore_missing_components: bool,
    /// `spec.targetNamespace`.
    pub target_namespace: Option<String>,
    /// `spec.namePrefix`.
    pub name_prefix: Option<String>,
    /// `spec.nameSuffix`.
    pub name_suffix: Option<String>,
    /// `spec.patches`.
    pub patches: Vec<Patch>,
    /// `spec.images`.
    pub images: Vec<Image>,
    /// `spec.buildMetadata`.
    pub build_metadata: Vec<String>,
    /// `spec.postBuild`.
    pub post_build: Option<PostBuild>,
    /// `spec.commonMetadata`, which Flux sets after the build.
    pub common_metadata: CommonMetadata,
}

/// Labels and annotations of all objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CommonMetadata {
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
}

impl FluxSpec {
    /// Returns the approximate size of its texts in bytes.
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
    /// The variables in `substitute`.
    pub substitute: BTreeMap<String, String>,
    /// Variables in objects of `substituteFrom` whose values are unknown, because they are encrypted.
    pub unknown: BTreeSet<String>,
    /// Objects in `substituteFrom` whose content is unknown: `ConfigMap/cluster-settings`.
    pub from: Vec<String>,
    /// Whether to substitute even if there are no variables (`substituteStrategy: Always`).
    pub always: bool,
    /// Whether an unset variable is replaced by the empty string, as before kustomize-controller 1.9.
    pub is_lenient: bool,
}

impl PostBuild {
    /// Returns whether a variable certainly has no value.
    pub(super) fn is_unset(&self, name: &str) -> bool {
        self.from.is_empty() && !self.unknown.contains(name) && !self.substitute.contains_key(name)
    }

    /// Returns whether substitution certainly happens. Without any variable it does not.
    pub(super) fn is_certain(&self) -> bool {
        self.always || !self.substitute.is_empty() || !self.unknown.is_empty()
    }
}

/// The kustomize options of a source of Argo CD, with its variables filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ArgoSpec {
    /// The field with the options in the Application: `spec.source.kustomize`.
    pub field: FieldPath,
    /// `namePrefix`.
    pub name_prefix: String,
    /// `nameSuffix`.
    pub name_suffix: String,
    /// `namespace`.
    pub namespace: String,
    /// `images`, as `kustomize edit set image` takes them.
    pub images: Vec<String>,
    /// `replicas`.
    pub replicas: Vec<Replica>,
    /// `commonLabels`.
    pub common_labels: BTreeMap<String, String>,
    /// `commonAnnotations`.
    pub common_annotations: BTreeMap<String, String>,
    /// `forceCommonLabels`.
    pub force_common_labels: bool,
    /// `forceCommonAnnotations`.
    pub force_common_annotations: bool,
    /// `labelWithoutSelector`.
    pub label_without_selector: bool,
    /// `labelIncludeTemplates`.
    pub label_include_templates: bool,
    /// `patches`.
    pub patches: Vec<Patch>,
    /// `components`.
    pub components: Vec<String>,
    /// `ignoreMissingComponents`.
    pub ignore_missing_components: bool,
}

/// The options of a build.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Options {
    /// The system that builds the tree.
    pub profile: Profile,
    /// The version of kustomize.
    pub version: Version,
    /// Restricts the files that may be loaded.
    pub restrictor: Restrictor,
    /// Whether Helm charts are inflated (`--enable-helm`).
    pub helm: bool,
    /// Whether external plugins run (`--enable-alpha-plugins`).
    pub plugins: bool,
    /// The additions of a Flux Kustomization.
    pub flux: FluxSpec,
    /// The additions of a source of Argo CD.
    pub argo: ArgoSpec,
    /// Whether a Component that is built alone is judged as a part of an unknown root.
    pub lone_components: bool,
}

impl Options {
    /// Returns the defaults of a profile.
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
