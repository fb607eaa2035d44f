//! How is a document written that AWS clients can read? A small writer that escapes everything.

use std::fmt::{Display, Write};

use jiff::Timestamp;

use crate::cloud::model::wire_time;

/// Writes elements one after the other; nesting follows the closures.
#[derive(Debug, Default)]
pub struct Xml {
    text: String,
}

impl Xml {
    /// Starts a document with its declaration.
    pub fn document() -> Self {
        Self { text: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".into() }
    }

    pub fn finish(self) -> String {
        self.text
    }

    pub fn text(&mut self, name: &str, value: impl Display) {
        self.open(name);
        let mut escaping = Escaping { text: &mut self.text };
        // Writing to a string cannot fail.
        write!(escaping, "{value}").ok();
        self.close(name);
    }

    pub fn optional(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    pub fn time(&mut self, name: &str, time: Timestamp) {
        self.text(name, wire_time(time));
    }

    pub fn optional_time(&mut self, name: &str, time: Option<Timestamp>) {
        self.optional(name, time.map(wire_time));
    }

    pub fn element(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.open(name);
        write(self);
        self.close(name);
    }

    /// Writes an element with attributes, which must not need escaping.
    pub fn root(&mut self, name: &str, namespace: &str, write: impl FnOnce(&mut Self)) {
        self.text.push_str(&format!("<{name} xmlns=\"{namespace}\">"));
        write(self);
        self.close(name);
    }

    /// Writes a list in EC2's form: each entry is an `item`.
    pub fn items<T>(
        &mut self,
        name: &str,
        entries: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.open(name);
        for entry in entries {
            self.element("item", |xml| write(xml, entry));
        }
        self.close(name);
    }

    /// Writes a list as the load balancing services do: each entry is a `member`.
    pub fn members<T>(
        &mut self,
        name: &str,
        entries: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.open(name);
        for entry in entries {
            self.element("member", |xml| write(xml, entry));
        }
        self.close(name);
    }

    pub fn member_values<T: Display>(&mut self, name: &str, values: impl IntoIterator<Item = T>) {
        self.open(name);
        for value in values {
            self.text("member", value);
        }
        self.close(name);
    }

    /// Writes a list of plain values.
    pub fn values<T: Display>(&mut self, name: &str, values: impl IntoIterator<Item = T>) {
        self.open(name);
        for value in values {
            self.text("item", value);
        }
        self.close(name);
    }

    fn open(&mut self, name: &str) {
        self.text.push('<');
        self.text.push_str(name);
        self.text.push('>');
    }

    fn close(&mut self, name: &str) {
        self.text.push_str("</");
        self.text.push_str(name);
        self.text.push('>');
    }
}

struct Escaping<'a> {
    text: &'a mut String,
}

impl Write for Escaping<'_> {
    fn write_str(&mut self, value: &str) -> std::fmt::Result {
        for character in value.chars() {
            match character {
                '&' => self.text.push_str("&amp;"),
                '<' => self.text.push_str("&lt;"),
                '>' => self.text.push_str("&gt;"),
                '"' => self.text.push_str("&quot;"),
                '\'' => self.text.push_str("&apos;"),
                // A bare carriage return would be read back as a line feed.
                '\r' => self.text.push_str("&#13;"),
                '\t' | '\n' => self.text.push(character),
                // XML 1.0 has no way to write other control characters; a document with one would be
                // unreadable as a whole.
                control if control < ' ' || matches!(control, '\u{fffe}' | '\u{ffff}') => {
                    self.text.push('\u{fffd}');
                }
                plain => self.text.push(plain),
            }
        }
        Ok(())
    }
}
