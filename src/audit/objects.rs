//! Audits single objects. The results replace the results of an earlier audit for these objects.

use kube::Client;

use super::target::{self, Served};
use super::{Audit, Audited, cluster};
use crate::catalog::Reference;

impl Audit {
    /// Audits some objects of a cluster. Loads only the kinds that the rules about these objects look up.
    ///
    /// # Errors
    /// If an object or a kind that rules look up cannot be read.
    pub async fn objects(&self, client: &Client, objects: &[Reference]) -> Result<Audited, kube::Error> {
        let mut kinds: Vec<_> = objects.iter().map(|object| object.kind).collect();
        kinds.dedup_by(|one, other| std::ptr::eq(*one, *other));
        let looked_up: Vec<_> = kinds.iter().flat_map(|kind| self.gate.registry().looked_up_for(kind)).collect();
        let audited = match cluster::load_kinds(client, self.gate.catalog(), &looked_up).await {
            Ok(()) => self.each(client, objects).await,
            Err(error) => Err(error),
        };
        self.gate.catalog().clear();
        audited
    }

    async fn each(&self, client: &Client, objects: &[Reference]) -> Result<Audited, kube::Error> {
        let mut audited = Audited::default();
        for object in objects {
            audited.add(self.object(client, object).await?);
        }
        Ok(audited.sorted())
    }

    /// Audits one object. The result is empty if the object does not exist, or if no rule applies to it.
    async fn object(&self, client: &Client, object: &Reference) -> Result<Audited, kube::Error> {
        let of_kind = |target: &target::Target| target.is_of(object.kind.group, object.kind.kind);
        let Some(target) = target::all(&self.gate, &self.chosen).into_iter().find(of_kind) else {
            return Ok(Audited::default());
        };
        let Some(served) = Served::find(client, target).await? else { return Ok(Audited::default()) };
        match served.api(client, Some(&object.namespace)).get_opt(&object.name).await? {
            Some(found) => {
                let text = serde_json::to_string(&found).map_err(kube::Error::SerdeError)?;
                Ok(self.judged_text(&served, &text).await)
            }
            None => Ok(Audited::default()),
        }
    }
}
