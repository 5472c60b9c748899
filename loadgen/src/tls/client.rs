//! How TLS is spoken with one server: versions, HTTP/1.1, whom to trust, and by which name it is called.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::ServerName;

use super::trust::{Anybody, Authorities, CaFile};
use crate::error::Error;

/// Which certificates are accepted.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'a> {
    System,
    /// `--ca-file`
    File(&'a CaFile),
    /// `--insecure`
    Anybody,
}

#[derive(Clone, Debug)]
pub struct TlsClient {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

impl TlsClient {
    pub fn new(host: &str, trust: Trust) -> Result<Self, Error> {
        let name = ServerName::try_from(host.to_owned());
        let name =
            name.map_err(|_| Error::Failed(format!("not a name that a certificate can be for: {host:?}")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match trust {
            Trust::System => Arc::new(Authorities::of_the_system(provider.clone())?),
            Trust::File(file) => Arc::new(Authorities::of_file(file, provider.clone())?),
            Trust::Anybody => Arc::new(Anybody(provider.clone())),
        };
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let versions = versions.map_err(|problem| Error::Failed(format!("TLS: {problem}")))?;
        let mut config =
            versions.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), name })
    }
}
