//! Keys, certificates and tokens of one control plane. Each control plane gets new ones, so the
//! secrets of earlier control planes are useless.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;

pub(crate) const CA_FILE: &str = "ca.crt";
pub(crate) const SERVING_CERT_FILE: &str = "serving.crt";
pub(crate) const SERVING_KEY_FILE: &str = "serving.key";
/// The private key that signs service account tokens.
pub(crate) const SERVICE_ACCOUNT_KEY_FILE: &str = "service-account.key";
/// The public key that verifies service account tokens.
pub(crate) const SERVICE_ACCOUNT_PUBLIC_FILE: &str = "service-account.pub";
/// The bearer tokens and their users.
pub(crate) const TOKEN_FILE: &str = "tokens.csv";

/// The addresses and names for which the API server's certificate is valid.
// Some clients check the certificate for a name of the service `kubernetes`.
const SERVER_NAMES: [&str; 4] = ["127.0.0.1", "localhost", "kubernetes", "kubernetes.default.svc"];

/// The data that a client needs to connect to the API server.
#[derive(Debug)]
pub(crate) struct Credentials {
    pub(crate) ca_file: PathBuf,
    pub(crate) ca_der: CertificateDer<'static>,
    pub(crate) admin_token: String,
    /// The token of a user with only the permissions of every authenticated user.
    pub(crate) nobody_token: String,
}

impl Credentials {
    /// Creates new credentials, and writes the servers' certificates, keys and tokens to `dir`.
    pub(crate) fn generate(dir: &Path) -> anyhow::Result<Self> {
        let ca = certificate_authority()?;
        let serving_key = KeyPair::generate().context("cannot generate the serving key")?;
        let serving =
            serving_params()?.signed_by(&serving_key, &ca).context("cannot sign the serving certificate")?;
        let service_account_key = KeyPair::generate().context("cannot generate the service account key")?;
        let credentials = Self {
            ca_file: dir.join(CA_FILE),
            ca_der: ca.der().clone(),
            admin_token: random_token()?,
            nobody_token: random_token()?,
        };
        let files = [
            (CA_FILE, ca.pem()),
            (SERVING_CERT_FILE, serving.pem()),
            (SERVING_KEY_FILE, serving_key.serialize_pem()),
            (SERVICE_ACCOUNT_KEY_FILE, service_account_key.serialize_pem()),
            (SERVICE_ACCOUNT_PUBLIC_FILE, service_account_key.public_key_pem()),
            (TOKEN_FILE, credentials.token_file()),
        ];
        for (name, content) in files {
            let path = dir.join(name);
            std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(credentials)
    }

    fn token_file(&self) -> String {
        let Self { admin_token, nobody_token, .. } = self;
        format!("{admin_token},admin,admin,system:masters\n{nobody_token},nobody,nobody\n")
    }
}

fn certificate_authority() -> anyhow::Result<CertifiedIssuer<'static, KeyPair>> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "kube-informer test CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate().context("cannot generate the CA's key")?;
    CertifiedIssuer::self_signed(params, key).context("cannot create the CA's certificate")
}

fn serving_params() -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(SERVER_NAMES.map(str::to_owned))
        .with_context(|| format!("cannot create a certificate for the server names {SERVER_NAMES:?}"))?;
    params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

/// Returns a token that other users of the machine, who can reach the API server's port, cannot
/// guess.
fn random_token() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .context("cannot read /dev/urandom; the control plane needs a Unix system")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credential_files_exist() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let credentials = Credentials::generate(dir.path()).expect("credentials");
        assert_ne!(credentials.admin_token, credentials.nobody_token);
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).expect("the file exists");
        assert!(read(CA_FILE).starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(read(SERVING_CERT_FILE).starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(read(SERVING_KEY_FILE).starts_with("-----BEGIN PRIVATE KEY-----"));
        assert!(read(SERVICE_ACCOUNT_KEY_FILE).starts_with("-----BEGIN PRIVATE KEY-----"));
        assert!(read(SERVICE_ACCOUNT_PUBLIC_FILE).starts_with("-----BEGIN PUBLIC KEY-----"));
        assert_eq!(read(TOKEN_FILE).lines().count(), 2);
    }
}
