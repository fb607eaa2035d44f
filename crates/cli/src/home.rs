//! What does `machinist up` keep in the current folder, and who holds it? One cluster for a folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::failure::Hinted;
use crate::state_file::{FILE, FOLDER};

/// `.machinist` in the folder where the command was called.
#[derive(Clone, Debug)]
pub struct Home {
    folder: PathBuf,
}

/// The proof that no other process has a cluster here. The kernel takes it back when the process
/// ends, however that happens.
#[derive(Debug)]
pub struct Lock {
    #[expect(dead_code, reason = "held for its Drop, which ends the lock")]
    file: File,
}

impl Home {
    pub fn here() -> anyhow::Result<Self> {
        let current = std::env::current_dir().context("cannot tell the current folder")?;
        Ok(Self::at(current.join(FOLDER)))
    }

    pub const fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// Data, credentials and logs.
    pub fn cluster(&self) -> PathBuf {
        self.folder.join("cluster")
    }

    /// What a background `machinist up` says.
    pub fn log(&self) -> PathBuf {
        self.folder.join("up.log")
    }

    fn lock_file(&self) -> PathBuf {
        self.folder.join("up.lock")
    }

    /// Takes the folder for this process and writes its id into the lock; fails with advice where
    /// another has it.
    pub fn lock(&self) -> anyhow::Result<Lock> {
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot create {}", self.folder.display()))?;
        let path = self.lock_file();
        let describe = || format!("cannot lock {}", path.display());
        loop {
            let mut options = OpenOptions::new();
            let mut file = options
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(&path)
                .with_context(describe)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(already_running(&mut file).into()),
                Err(TryLockError::Error(error)) => return Err(error).with_context(describe),
            }
            // The one before may have removed the file between our open and our lock; what we hold
            // then is the lock of a file that nobody else can find.
            let is_current = std::fs::metadata(&path).is_ok_and(|found| {
                file.metadata()
                    .is_ok_and(|held| (held.dev(), held.ino()) == (found.dev(), found.ino()))
            });
            if is_current {
                file.set_len(0).with_context(describe)?;
                write!(file, "{}", std::process::id()).with_context(describe)?;
                return Ok(Lock { file });
            }
        }
    }

    /// The process that has a cluster here, if one has.
    pub fn holder(&self) -> anyhow::Result<Option<u32>> {
        let path = self.lock_file();
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => {
                let process = written_process(&mut file);
                process.map(Some).with_context(|| format!("{} names no process", path.display()))
            }
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", path.display()))
            }
        }
    }

    /// Removes what says that a cluster is here; logs stay.
    pub fn remove_state(&self) -> anyhow::Result<()> {
        remove_file(&self.folder.join(FILE))?;
        remove_file(&self.kubeconfig())
    }

    /// Removes what a process that was killed left behind. The log stays: a background process
    /// writes into it before it is here.
    pub fn remove_leftovers(&self) -> anyhow::Result<()> {
        self.remove_state()?;
        let cluster = self.cluster();
        match std::fs::remove_dir_all(&cluster) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", cluster.display()))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Removes everything. The lock's file goes while the lock is held, so that who waits for it
    /// finds none or a new one.
    pub fn remove(&self, lock: Lock) -> anyhow::Result<()> {
        self.remove_leftovers()?;
        remove_file(&self.log())?;
        remove_file(&self.lock_file())?;
        // Not empty where somebody put something of their own there; that stays.
        std::fs::remove_dir(&self.folder).ok();
        drop(lock);
        Ok(())
    }
}

fn already_running(file: &mut File) -> Hinted {
    let process = written_process(file);
    let who = process.map_or_else(String::new, |process| format!(" (process {process})"));
    Hinted::new(
        format!("a cluster of `machinist up` already runs in this folder{who}"),
        "see it with `machinist status`, end it with `machinist down`, or start another one in \
         another folder",
    )
}

fn written_process(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn remove_file(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_holds_one_cluster_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join(FOLDER));
        assert_eq!(home.holder().unwrap(), None);
        let lock = home.lock().unwrap();
        assert_eq!(home.holder().unwrap(), Some(std::process::id()));
        let refusal = home.lock().unwrap_err().to_string();
        assert!(refusal.contains(&std::process::id().to_string()), "{refusal}");
        home.remove(lock).unwrap();
        assert!(!home.folder().exists());
        assert_eq!(home.holder().unwrap(), None);
    }

    #[test]
    fn a_lock_whose_holder_is_gone_can_be_taken() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join(FOLDER));
        drop(home.lock().unwrap());
        assert_eq!(home.holder().unwrap(), None);
        home.lock().unwrap();
    }

    #[test]
    fn what_others_put_into_the_folder_stays() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join(FOLDER));
        let lock = home.lock().unwrap();
        std::fs::create_dir_all(home.cluster().join("logs")).unwrap();
        std::fs::write(home.folder().join("notes"), "mine").unwrap();
        home.remove(lock).unwrap();
        assert!(!home.cluster().exists());
        assert!(home.folder().join("notes").exists());
    }
}
