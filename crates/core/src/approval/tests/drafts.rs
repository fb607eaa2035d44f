//! Signing requests: some made by others' programs, and one made by hand so that every part of it can
//! be wrong. Nobody looks at the keys and signatures: the signer does.

use std::net::IpAddr;

/// Made by Go, as a kubelet makes it: for `ip-10-0-1-7.ec2.internal`, 10.0.1.7 and fd00::7.
pub const BY_GO: &str = "\
-----BEGIN CERTIFICATE REQUEST-----
MIIBTzCB9gIBADBGMRUwEwYDVQQKEwxzeXN0ZW06bm9kZXMxLTArBgNVBAMTJHN5
c3RlbTpub2RlOmlwLTEwLTAtMS03LmVjMi5pbnRlcm5hbDBZMBMGByqGSM49AgEG
CCqGSM49AwEHA0IABC92Ly0YB4zIuif52oAXGetFhUFc9cZA4TjWgvn9To2zqVnH
4LQ5aUDzeV3ZFSa3Nz/J7kx/XFsmsMp3o9gogKugTjBMBgkqhkiG9w0BCQ4xPzA9
MDsGA1UdEQQ0MDKCGGlwLTEwLTAtMS03LmVjMi5pbnRlcm5hbIcECgABB4cQ/QAA
AAAAAAAAAAAAAAAABzAKBggqhkjOPQQDAgNIADBFAiAiLfVVzTWsG6R12Jd75zxS
90fGHXrGMPoft/pLrCDEEQIhANHlHIsy+F3YrG7kgNLniSF44Z64k2x4KKv9f8XX
8UGv
-----END CERTIFICATE REQUEST-----
";

/// Made by OpenSSL, without alternative names.
pub const CLIENT_BY_OPENSSL: &str = "\
-----BEGIN CERTIFICATE REQUEST-----
MIIBAjCBqAIBADBGMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxLTArBgNVBAMMJHN5
c3RlbTpub2RlOmlwLTEwLTAtMS03LmVjMi5pbnRlcm5hbDBZMBMGByqGSM49AgEG
CCqGSM49AwEHA0IABL2MCE3vT9Jyij7N2XAwpv6moO92Y8BJXbwecG4zNhJguCYU
lYEKqgAA4DKKLmkWHiE9VbgIFLhT2v/LaAWyMjWgADAKBggqhkjOPQQDAgNJADBG
AiEA602HdiOcZDiVuribE4QPR0B5OWQgx+ua/FTieBJDpbICIQD5Rej1PRoYfqsD
RsbInkyMRTWdmsy3sfsDDZW+JAcGHw==
-----END CERTIFICATE REQUEST-----
";

/// Made by OpenSSL, for the same names as the one by Go.
pub const SERVING_BY_OPENSSL: &str = "\
-----BEGIN CERTIFICATE REQUEST-----
MIIBTjCB9gIBADBGMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxLTArBgNVBAMMJHN5
c3RlbTpub2RlOmlwLTEwLTAtMS03LmVjMi5pbnRlcm5hbDBZMBMGByqGSM49AgEG
CCqGSM49AwEHA0IABL2MCE3vT9Jyij7N2XAwpv6moO92Y8BJXbwecG4zNhJguCYU
lYEKqgAA4DKKLmkWHiE9VbgIFLhT2v/LaAWyMjWgTjBMBgkqhkiG9w0BCQ4xPzA9
MDsGA1UdEQQ0MDKCGGlwLTEwLTAtMS03LmVjMi5pbnRlcm5hbIcECgABB4cQ/QAA
AAAAAAAAAAAAAAAABzAKBggqhkjOPQQDAgNHADBEAiAijPluq04PhcpIaIDhUbg8
beWGGZwmIWIFTk8vkbmDjwIgFML+nSe1sYXmq6G4hHQehgKxLBRsSvP3p6HUJNgj
oaY=
-----END CERTIFICATE REQUEST-----
";

/// A certificate for the same names.
pub const CERTIFICATE_BY_OPENSSL: &str = "\
-----BEGIN CERTIFICATE-----
MIICIjCCAcigAwIBAgIUUbQwxNEycOPtxTA0n38E6v/T93wwCgYIKoZIzj0EAwIw
RjEVMBMGA1UECgwMc3lzdGVtOm5vZGVzMS0wKwYDVQQDDCRzeXN0ZW06bm9kZTpp
cC0xMC0wLTEtNy5lYzIuaW50ZXJuYWwwIBcNMjYxMTE1MTAwMjUwWhgPMjEyNjEw
MjIxMDAyNTBaMEYxFTATBgNVBAoMDHN5c3RlbTpub2RlczEtMCsGA1UEAwwkc3lz
dGVtOm5vZGU6aXAtMTAtMC0xLTcuZWMyLmludGVybmFsMFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEvYwITe9P0nKKPs3ZcDCm/qag73ZjwEldvB5wbjM2EmC4JhSV
gQqqAADgMoouaRYeIT1VuAgUuFPa/8toBbIyNaOBkTCBjjAdBgNVHQ4EFgQUec34
FIQwIzLncArLh+M+llnWTG8wHwYDVR0jBBgwFoAUec34FIQwIzLncArLh+M+llnW
TG8wDwYDVR0TAQH/BAUwAwEB/zA7BgNVHREENDAyghhpcC0xMC0wLTEtNy5lYzIu
aW50ZXJuYWyHBAoAAQeHEP0AAAAAAAAAAAAAAAAAAAcwCgYIKoZIzj0EAwIDSAAw
RQIgAeUm+12q/0BBxqfKkm3zlsewYBoRLSqBHgtz9/ZDyeMCIQCtQBJAVg0rQXM7
rn4rai1YIqys1lhJR6VD+lHu3tQbqw==
-----END CERTIFICATE-----
";

/// A request to be written in DER.
#[derive(Clone)]
pub struct Draft {
    /// Object identifier, tag of the string, and the string.
    pub subject: Vec<(&'static [u8], u8, Vec<u8>)>,
    /// Tag and content of each alternative name; `None` leaves the whole extension out.
    pub names: Option<Vec<(u8, Vec<u8>)>>,
    /// Extensions beside the alternative names.
    pub extensions: Vec<Vec<u8>>,
    /// Attributes beside the requested extensions.
    pub attributes: Vec<Vec<u8>>,
}

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
pub const ORGANIZATIONAL_UNIT: &[u8] = &[0x55, 0x04, 0x0b];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const EXTENSION_REQUEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e];
const UTF8: u8 = 0x0c;

impl Draft {
    /// A node's own request without alternative names.
    pub fn of_node(name: &str) -> Self {
        Self::of(&format!("system:node:{name}"), &["system:nodes"])
    }

    pub fn of(common_name: &str, organizations: &[&str]) -> Self {
        let mut subject: Vec<_> =
            organizations.iter().map(|one| (ORGANIZATION, UTF8, one.as_bytes().to_vec())).collect();
        subject.push((COMMON_NAME, UTF8, common_name.as_bytes().to_vec()));
        Self { subject, names: None, extensions: Vec::new(), attributes: Vec::new() }
    }

    pub fn name(mut self, tag: u8, content: &[u8]) -> Self {
        self.names.get_or_insert_default().push((0x80 | tag, content.to_vec()));
        self
    }

    pub fn dns(self, name: &str) -> Self {
        self.name(2, name.as_bytes())
    }

    pub fn ip(self, address: &str) -> Self {
        match address.parse().unwrap() {
            IpAddr::V4(four) => self.name(7, &four.octets()),
            IpAddr::V6(sixteen) => self.name(7, &sixteen.octets()),
        }
    }

    pub fn der(&self) -> Vec<u8> {
        let subject: Vec<u8> = self
            .subject
            .iter()
            .flat_map(|(identifier, tag, text)| {
                wrap(0x31, &sequence(&[wrap(0x06, identifier), wrap(*tag, text)]))
            })
            .collect();
        let mut extensions = self.extensions.clone();
        if let Some(names) = &self.names {
            let names: Vec<Vec<u8>> = names.iter().map(|(tag, text)| wrap(*tag, text)).collect();
            extensions.push(extension(ALTERNATIVE_NAMES, &sequence(&names)));
        }
        let mut attributes = self.attributes.clone();
        if !extensions.is_empty() {
            attributes.push(attribute(&[sequence(&extensions)]));
        }
        let key = sequence(&[
            sequence(&[
                wrap(0x06, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01]),
                wrap(0x06, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07]),
            ]),
            wrap(0x03, &[0; 66]),
        ]);
        let info = sequence(&[
            wrap(0x02, &[0]),
            wrap(0x30, &subject),
            key,
            wrap(0xa0, &attributes.concat()),
        ]);
        let algorithm = sequence(&[wrap(0x06, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02])]);
        sequence(&[info, algorithm, wrap(0x03, &[0; 65])])
    }

    pub fn pem(&self) -> String {
        pem(&self.der())
    }
}

pub fn pem(der: &[u8]) -> String {
    let text = base64(der);
    let mut pem = "-----BEGIN CERTIFICATE REQUEST-----\n".to_owned();
    for line in text.as_bytes().chunks(64) {
        pem.push_str(std::str::from_utf8(line).unwrap());
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE REQUEST-----\n");
    pem
}

/// An attribute that requests extensions.
pub fn attribute(values: &[Vec<u8>]) -> Vec<u8> {
    sequence(&[wrap(0x06, EXTENSION_REQUEST), wrap(0x31, &values.concat())])
}

pub fn alternative_names(name: &str) -> Vec<u8> {
    extension(ALTERNATIVE_NAMES, &sequence(&[wrap(0x82, name.as_bytes())]))
}

pub fn key_usage() -> Vec<u8> {
    extension(KEY_USAGE, &[0x03, 0x02, 0x05, 0xa0])
}

fn extension(identifier: &[u8], value: &[u8]) -> Vec<u8> {
    sequence(&[wrap(0x06, identifier), wrap(0x04, value)])
}

pub fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    wrap(0x30, &parts.concat())
}

fn wrap(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut all = vec![tag];
    let length = content.len();
    match u8::try_from(length) {
        Ok(short) if short < 128 => all.push(short),
        Ok(long) => all.extend([0x81, long]),
        Err(_) => {
            all.push(0x82);
            all.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
    }
    all.extend(content);
    all
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for index in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * index)) as usize & 63] as char;
            text.push(if index <= chunk.len() { letter } else { '=' });
        }
    }
    text
}
