//! Direct access to the stored objects of one kind, without HTTP and its checks.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::catalogue::Served;
use crate::api::controllers;
use crate::api::status::{self, Refusal};
use crate::api::writes::{Body, DeleteOptions, Outcome, WriteOptions, WriteSource, Writer, metadata_str};
use crate::http::Server;
use crate::simulator::Error;
use crate::storage::Object;

/// The stored objects of one kind, in one API version of the kind. Cheap to clone.
///
/// Objects that are stored in another API version are converted, as in responses to clients.
///
/// Objects are stored as given: the status is not reset, the generation is not incremented, and no
/// schema is applied. Missing fields are added (such as the UID, the creation time, and the
/// namespace `default`), and a cluster-scoped object loses its `metadata.namespace`. Objects that
/// are nested more than about 100 levels deep (in `managedFields`, 120) are refused. Each write
/// gets a resource version and is an event for watches.
///
/// If an updated object has a deletion timestamp, and nothing (such as a finalizer) blocks its
/// removal, the update removes the object instead.
#[derive(Clone, Debug)]
pub struct ObjectStore {
    server: Arc<Server>,
    served: Arc<Served>,
}

/// One version of an object in the simulator. Cheap to clone.
#[derive(Clone, Debug)]
pub struct StoredObject(Arc<Object>);

impl ObjectStore {
    pub(crate) fn find(server: &Arc<Server>, api_version: &str, kind: &str) -> Result<Self, Error> {
        let served = server.api.catalogue.of_type(api_version, kind).ok_or_else(|| {
            Error::UnknownResource { api_version: api_version.to_owned(), kind: kind.to_owned() }
        })?;
        Ok(Self { server: server.clone(), served })
    }

    /// Returns the store for the kind of an object, and the object as JSON.
    pub(crate) fn of_object(server: &Arc<Server>, object: &impl Serialize) -> Result<(Self, Body), Error> {
        let body = to_body(object)?;
        let text = |field| body.get(field).and_then(Value::as_str).unwrap_or_default();
        let store = Self::find(server, text("apiVersion"), text("kind"))?;
        Ok((store, body))
    }

    /// Creates an object, which needs a name or a `generateName`.
    ///
    /// # Errors
    ///
    /// - [`Error::Refused`] if the object exists, has no valid name, is of another kind or is not a
    ///   JSON object
    /// - [`Error::Conversion`] if the object cannot be serialized
    pub fn create(&self, object: &impl Serialize) -> Result<StoredObject, Error> {
        self.create_body(to_body(object)?)
    }

    /// Replaces an object. If `object` has no UID or creation time, the stored value remains.
    ///
    /// # Errors
    ///
    /// - [`Error::Refused`] if there is no such object, if the given `resourceVersion` (except `0`)
    ///   or UID differs from that of the stored object, or if `object` is of another kind or is not
    ///   a JSON object
    /// - [`Error::Conversion`] if `object` cannot be serialized
    pub fn update(&self, object: &impl Serialize) -> Result<StoredObject, Error> {
        self.update_body(to_body(object)?)
    }

    /// Creates or replaces an object, and ignores its `resourceVersion`.
    ///
    /// # Errors
    ///
    /// - [`Error::Refused`] if the object has no valid name, has another UID than the stored
    ///   object, is of another kind or is not a JSON object
    /// - [`Error::Conversion`] if the object cannot be serialized
    pub fn apply(&self, object: &impl Serialize) -> Result<StoredObject, Error> {
        self.apply_body(to_body(object)?)
    }

    /// Changes the object with this key: runs the closure on a copy and stores the result. After a
    /// conflict with another write, the closure runs again on a new copy.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there is no such object, or if the result is not a JSON object of this
    /// kind, or has another UID or resource version (except `0`) than the copy.
    pub fn modify(&self, key: &str, mut change: impl FnMut(&mut Value)) -> Result<StoredObject, Error> {
        loop {
            let before = self.get(key)?;
            let mut value = before.value();
            change(&mut value);
            let outcome = self.update_body(into_body(value)?);
            let is_conflict = matches!(&outcome, Err(Error::Refused(refusal)) if refusal.is_conflict());
            // If the object has not changed, the closure itself has caused the conflict.
            if !is_conflict || self.get(key)?.resource_version() == before.resource_version() {
                return outcome;
            }
        }
    }

    /// Deletes the object with this key. An object with finalizers only gets a deletion timestamp.
    /// Returns the removed object, or the object with its deletion timestamp. The default
    /// propagation policy applies: the simulated
    /// [controllers](crate::SimulatorBuilder::without_controllers) also delete dependants without
    /// another owner, except those of Jobs and replication controllers.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there is no such object.
    pub fn delete(&self, key: &str) -> Result<StoredObject, Error> {
        let (namespace, name) = self.served.kind.split_key(key);
        let outcome = self.writer(namespace).delete(name, &DeleteOptions::default())?;
        Ok(self.convert(outcome.into_object()))
    }

    /// Deletes the object with a grace period of 0 seconds.
    pub(crate) fn delete_at_once(&self, key: &str) -> Result<(), Error> {
        let (namespace, name) = self.served.kind.split_key(key);
        let mut options = DeleteOptions::default();
        options.grace_period_seconds = Some(0);
        self.writer(namespace).delete(name, &options)?;
        Ok(())
    }

    /// Deletes the object with this key as if its stored bytes were unreadable, and returns its
    /// last version. Finalizers are ignored. On a real server, a client causes the same deletion
    /// with the delete option `ignoreStoreReadErrorWithClusterBreakingPotential`.
    ///
    /// Effect on the watches of the resource:
    ///
    /// - With a watch cache: the cache is rebuilt, so open watches end. New watches from a version
    ///   before the deletion are answered with 410 `Expired`.
    /// - Without a watch cache (Event objects): open watches, and new watches from a version before
    ///   the deletion, end with an `ERROR` event of code 500 and reason `StorageReadError`. This
    ///   affects all watches for which a real server reads the object from etcd, even if a selector
    ///   does not match the object. Only these watches continue:
    ///   - Watches of another namespace.
    ///   - Watches of all namespaces whose field selector requires another `metadata.namespace`.
    ///   - Watches whose field selector requires another `metadata.name`, if the URL or the field
    ///     selector also contains the object's namespace.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there is no such object.
    #[doc(alias = "StorageReadError")]
    pub fn delete_corrupt(&self, key: &str) -> Result<StoredObject, Error> {
        let (table, kind) = (&self.served.table, &self.served.kind);
        let last = table.write(|transaction| {
            let name = kind.split_key(key).1;
            let old = transaction.current(key).ok_or_else(|| status::not_found(kind, name))?;
            Ok::<_, Refusal>(transaction.remove_corrupt(key, old.decode()))
        })?;
        controllers::after_write(&self.server.api, &self.served, &Outcome::removed(last.clone()));
        Ok(self.convert(last))
    }

    /// Returns the object with this key: `namespace/name`, or only the name for a cluster-scoped
    /// object.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there is no such object.
    pub fn get(&self, key: &str) -> Result<StoredObject, Error> {
        let missing = || status::not_found(&self.served.table.kind, key.rsplit('/').next().unwrap_or(key));
        Ok(self.convert(self.served.table.get(key).ok_or_else(missing)?))
    }

    /// Lists all stored objects of the kind in key order.
    #[must_use]
    pub fn list(&self) -> Vec<StoredObject> {
        self.served.table.objects().into_iter().map(|object| self.convert(object)).collect()
    }

    /// Returns the number of stored objects of the kind.
    #[must_use]
    pub fn len(&self) -> usize {
        self.served.table.len()
    }

    /// Returns whether no object of the kind is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn create_body(&self, body: Body) -> Result<StoredObject, Error> {
        let namespace = self.namespace_of(&body);
        let outcome = self.writer(namespace.as_deref()).create(body, WriteSource::Test)?;
        Ok(self.convert(outcome.into_object()))
    }

    pub(crate) fn update_body(&self, body: Body) -> Result<StoredObject, Error> {
        let namespace = self.namespace_of(&body);
        let outcome = self.writer(namespace.as_deref()).update_verbatim(body)?;
        Ok(self.convert(outcome.into_object()))
    }

    pub(crate) fn apply_body(&self, mut body: Body) -> Result<StoredObject, Error> {
        if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
            metadata.remove("resourceVersion");
        }
        loop {
            match self.update_body(body.clone()) {
                Err(Error::Refused(refusal)) if refusal.is_not_found() => {}
                outcome => return outcome,
            }
            match self.create_body(body.clone()) {
                // Another thread has created the object after the update.
                Err(Error::Refused(refusal)) if refusal.is_already_exists() => {}
                outcome => return outcome,
            }
        }
    }

    fn writer<'a>(&'a self, namespace: Option<&'a str>) -> Writer<'a> {
        Writer { api: &self.server.api, served: &self.served, namespace, options: WriteOptions::default() }
    }

    fn convert(&self, stored: Arc<Object>) -> StoredObject {
        StoredObject(self.served.convert(stored))
    }

    fn namespace_of(&self, body: &Body) -> Option<String> {
        let namespace = metadata_str(body, "namespace").unwrap_or("default");
        self.served.kind.namespaced.then(|| namespace.to_owned())
    }
}

impl StoredObject {
    /// Returns the namespace, or `None` for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.0.namespace()
    }

    /// Returns the name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Returns the UID of the object.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.0.uid
    }

    /// Returns the resource version of this version of the object.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.0.resource_version
    }

    /// Returns the object as JSON, in the bytes that clients receive.
    #[must_use]
    pub fn json(&self) -> Bytes {
        self.0.json().clone()
    }

    /// Returns the object as a JSON value.
    #[must_use]
    pub fn value(&self) -> Value {
        Value::Object(self.0.decode())
    }

    /// Decodes the object as a `K`.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] if the object cannot be decoded as a `K`.
    pub fn parse<K: DeserializeOwned>(&self) -> Result<K, Error> {
        Ok(serde_json::from_slice(self.0.json())?)
    }
}

fn to_body(object: &impl Serialize) -> Result<Body, Error> {
    into_body(serde_json::to_value(object)?)
}

pub(crate) fn into_body(value: Value) -> Result<Body, Error> {
    match value {
        Value::Object(body) => Ok(body),
        _ => Err(Error::Refused(status::bad_request("the given object is not a JSON object"))),
    }
}
