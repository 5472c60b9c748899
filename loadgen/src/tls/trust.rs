//! Which certificates are accepted: those that an authority vouches for, those of a file, or any.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme};

use crate::error::Error;

/// Accepts what an authority has signed, and a certificate that the user's own file holds itself.
///
/// The second is what `openssl req -x509` makes: its certificate is an authority's and a server's in one,
/// which the rules for authorities forbid and other clients accept. Its name and dates are checked all the
/// same.
#[derive(Debug)]
pub struct Authorities {
    by_the_rules: Arc<WebPkiServerVerifier>,
    own: Vec<CertificateDer<'static>>,
}

/// A file of certificates as it was read.
#[derive(Debug)]
pub struct CaFile {
    path: PathBuf,
    pem: Vec<u8>,
}

impl CaFile {
    pub fn read(path: &Path) -> Result<Self, Error> {
        let read = std::fs::read(path).map(|pem| Self { path: path.to_owned(), pem });
        read.map_err(|problem| Error::file(path, format!("--ca-file: cannot read: {problem}")))
    }
}

impl Authorities {
    pub fn of_file(file: &CaFile, provider: Arc<CryptoProvider>) -> Result<Self, Error> {
        let wrong = |problem: String| Error::file(&file.path, format!("--ca-file: {problem}"));
        let own = CertificateDer::pem_slice_iter(&file.pem).collect::<Result<Vec<_>, _>>();
        let own = own.map_err(|problem| wrong(format!("no certificate in PEM: {problem}")))?;
        if own.is_empty() {
            return Err(wrong("no certificate in it; it begins with -----BEGIN CERTIFICATE-----".to_owned()));
        }
        let mut roots = RootCertStore::empty();
        for certificate in &own {
            roots
                .add(certificate.clone())
                .map_err(|problem| wrong(format!("a certificate that cannot be read: {problem}")))?;
        }
        Ok(Self { by_the_rules: by_the_rules(roots, provider).map_err(wrong)?, own })
    }

    pub fn of_the_system(provider: Arc<CryptoProvider>) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let by_the_rules = by_the_rules(roots, provider).map_err(|_| {
            Error::failed(
                "https: this system knows no certificate authorities; --ca-file FILE names one, \
                    --insecure accepts any certificate",
            )
        })?;
        Ok(Self { by_the_rules, own: Vec::new() })
    }
}

fn by_the_rules(
    roots: RootCertStore,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, String> {
    let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    built.map_err(|problem| problem.to_string())
}

impl ServerCertVerifier for Authorities {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let found = self.by_the_rules.verify_server_cert(end_entity, intermediates, name, ocsp_response, now);
        match found {
            // Told behind the dates and before the name.
            Err(TlsError::InvalidCertificate(CertificateError::Other(_)))
                if self.own.iter().any(|own| own == end_entity) =>
            {
                rustls::client::verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            found => found,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.by_the_rules.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.by_the_rules.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_the_rules.supported_verify_schemes()
    }
}

/// `--insecure`: any certificate, also one that cannot be read.
#[derive(Debug)]
pub struct Anybody(pub Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Ok(HandshakeSignatureValid::assertion())
    }

    /// Those too that nobody here could check.
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let checked = self.0.signature_verification_algorithms.supported_schemes();
        checked.into_iter().chain([SignatureScheme::ECDSA_NISTP521_SHA512, SignatureScheme::ED448]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_accepts_any_certificate_says_so_of_keys_that_cannot_be_checked_too() {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let by_the_rules = provider.signature_verification_algorithms.supported_schemes();
        let offered = Anybody(provider).supported_verify_schemes();
        assert!(by_the_rules.iter().all(|scheme| offered.contains(scheme)));
        assert!(offered.contains(&SignatureScheme::ECDSA_NISTP521_SHA512));
        assert!(offered.contains(&SignatureScheme::ED448));
    }
}
