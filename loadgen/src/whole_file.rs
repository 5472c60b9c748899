//! Files that are there whole or not at all: written beside their place, and moved there when done. Only what
//! no other file may take the place of, as standard output, is written on where it is.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::{self, Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;

/// Whether the file can be written: asked before a run, so that nobody measures for an hour and keeps
/// nothing.
pub fn check(path: &Path) -> Result<(), Error> {
    if path.as_os_str().is_empty() {
        return Err(Error::failed("cannot write: the name of a file is empty"));
    }
    if path.is_dir() {
        return Err(Error::file(path, "cannot write: it is a directory"));
    }
    let tried = if is_device(path) {
        try_device(path)
    } else {
        begin(&place(path)).and_then(|(partial, _)| fs::remove_file(partial))
    };
    tried.map_err(|problem| Error::file(path, format!("cannot write: {problem}")))
}

/// One file cannot hold two results. `named`: each option, and the file that it names.
pub fn check_differ(named: &[(&str, Option<&Path>)]) -> Result<(), Error> {
    let mut seen = BTreeMap::new();
    for &(option, path) in named {
        let Some(path) = path.filter(|path| !is_device(path)) else { continue };
        if let Some(other) = seen.insert(place(path), option) {
            return Err(Error::file(path, format!("a file holds one result: {other} and {option} name it")));
        }
    }
    Ok(())
}

/// No result takes the place of a file that it is made from.
pub fn check_spares<'a>(
    named: &[(&str, Option<&Path>)],
    inputs: impl Iterator<Item = &'a Path>,
) -> Result<(), Error> {
    let outputs = named.iter().filter_map(|&(option, path)| path.map(|path| (option, path, place(path))));
    let outputs: Vec<_> = outputs.filter(|(_, path, _)| !is_device(path)).collect();
    if outputs.is_empty() {
        return Ok(());
    }
    let inputs: BTreeSet<PathBuf> = inputs.filter(|path| !is_device(path)).map(place).collect();
    match outputs.iter().find(|(.., place)| inputs.contains(place)) {
        Some((option, path, _)) => {
            Err(Error::file(path, format!("{option} would replace a file that is read")))
        }
        None => Ok(()),
    }
}

/// What comes through a pipe comes once: the second to read it would find nothing. `named`: each option, and
/// the file that it reads.
pub fn check_read_once(named: &[(&str, Option<&Path>)]) -> Result<(), Error> {
    let mut seen = BTreeMap::new();
    for &(option, path) in named {
        let Some(path) = path else { continue };
        let Some(pipe) = fs::metadata(path).ok().filter(is_pipe) else { continue };
        if let Some(other) = seen.insert((pipe.dev(), pipe.ino()), option) {
            return Err(Error::file(path, format!("a pipe is read once: {other} and {option} name it")));
        }
    }
    Ok(())
}

fn is_pipe(found: &fs::Metadata) -> bool {
    found.file_type().is_fifo() || found.file_type().is_socket()
}

/// /dev/stdout, /dev/null, a pipe: nothing that another file may take the place of.
///
/// What stands below /dev and /proc is one whatever it leads to: where standard output goes to a file,
/// /dev/stdout is still the system's. Only /dev/shm has files like any other folder.
fn is_device(path: &Path) -> bool {
    let of_system = path.starts_with("/proc") || path.starts_with("/dev") && !path.starts_with("/dev/shm");
    of_system || fs::metadata(path).is_ok_and(|found| !found.is_file())
}

/// Standard output and error go on where they are. Opened anew, a file to which they lead would be written
/// from its start; what any other device leads to is written at its end.
fn device(path: &Path) -> io::Result<File> {
    match path.to_str() {
        Some("/dev/stdout") => Ok(io::stdout().as_fd().try_clone_to_owned()?.into()),
        Some("/dev/stderr") => Ok(io::stderr().as_fd().try_clone_to_owned()?.into()),
        _ => OpenOptions::new().append(true).open(path),
    }
}

/// A pipe is not opened only to try it: to its reader the end of that would be the end of all.
fn try_device(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.file_type().is_fifo() { Ok(()) } else { device(path).map(drop) }
}

/// Who may read, write and execute; not as whom it runs.
const PERMISSION_BITS: u32 = 0o777;
/// As many links as the kernel follows.
const LINKS_MAX: usize = 40;

/// Where the file is or will be: links to it are followed, so that they stay links, also one that leads to a
/// file that is not there yet.
fn place(path: &Path) -> PathBuf {
    let mut path = path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for _ in 0..LINKS_MAX {
        if let Ok(found) = fs::canonicalize(&path) {
            return found;
        }
        let Ok(target) = fs::read_link(&path) else { break };
        path.pop();
        path.push(target);
    }
    path
}

/// None of what ends in `/`, `/.` or `..`: no file can be moved there.
fn file_name(place: &Path) -> Option<&OsStr> {
    place.file_name().filter(|name| place.as_os_str().as_bytes().ends_with(name.as_bytes()))
}

/// A new file beside this place, `.NAME.<process>.<number>.partial`, and its path. No other file is touched,
/// whatever its name: neither a result that another process is writing, nor what an interrupted one left.
fn begin(place: &Path) -> io::Result<(PathBuf, File)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let file_name = file_name(place).ok_or_else(|| io::Error::other("only a directory's path ends so"))?;
    loop {
        let mut name = OsString::from(".");
        name.push(file_name);
        name.push(format!(".{}.{}.partial", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
        let partial = place.with_file_name(name);
        match File::create_new(&partial) {
            Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => {}
            file => return file.map(|file| (partial, file)),
        }
    }
}

/// Who may read a file may read the new one: it gets owner, group and mode. Where only another may give it to
/// them it stays that of who writes it, as any new file is.
fn be_as(file: &File, replaced: &fs::Metadata) -> io::Result<()> {
    let now = file.metadata()?;
    let is_theirs = (now.uid(), now.gid()) == (replaced.uid(), replaced.gid());
    if is_theirs || fchown(file, Some(replaced.uid()), Some(replaced.gid())).is_ok() {
        file.set_permissions(Permissions::from_mode(replaced.mode() & PERMISSION_BITS))?;
    }
    Ok(())
}

/// Fills a new file, which then takes the place of the one that is there, if one is.
fn replace(place: &Path, fill: impl FnOnce(File) -> io::Result<()>) -> io::Result<()> {
    let (partial, file) = begin(place)?;
    let filled = || {
        if let Ok(replaced) = fs::metadata(place) {
            be_as(&file, &replaced)?;
        }
        fill(file)?;
        fs::rename(&partial, place)
    };
    filled().inspect_err(|_| drop(fs::remove_file(&partial)))
}

pub fn write(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), Error> {
    let filled = |file: File| {
        let mut out = BufWriter::new(file);
        fill(&mut out)?;
        out.flush()
    };
    let written = if is_device(path) { device(path).and_then(filled) } else { replace(&place(path), filled) };
    written.map_err(|problem| Error::file(path, format!("cannot write: {problem}")))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn write_text(path: &Path, text: &str) {
        check(path).unwrap();
        write(path, |out| out.write_all(text.as_bytes())).unwrap();
    }

    #[test]
    fn what_a_link_leads_to_is_written_and_the_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["r.json", "link.json"].map(|name| folder.path().join(name));
        fs::write(&file, "what was there before, and is longer").unwrap();
        symlink(&file, &link).unwrap();
        write_text(&link, "new");
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside them");
        let named = [("--json", Some(file.as_path())), ("--hlog", Some(link.as_path()))];
        let told = check_differ(&named).unwrap_err().to_string();
        assert!(told.ends_with("link.json: a file holds one result: --json and --hlog name it"), "{told}");
    }

    #[test]
    fn no_file_beside_it_is_touched_and_one_that_is_written_meanwhile_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let [file, beside, link, other] =
            ["r.json", "r.json.partial", "s.json.partial", "other"].map(|name| folder.path().join(name));
        fs::write(&beside, "a body").unwrap();
        fs::write(&other, "another's").unwrap();
        symlink(&other, &link).unwrap();
        write_text(&folder.path().join("s.json"), "{}");
        check(&file).unwrap();
        // Written as two processes do it, one within the other's time.
        write(&file, |out| {
            write_text(&file, "the first to be done");
            write_text(&beside, "of the name that it had");
            out.write_all(b"the last")
        })
        .unwrap();
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!(
            [&file, &beside, &other].map(|path| read(path)),
            ["the last", "of the name that it had", "another's"]
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "nothing is left beside them");
    }

    #[test]
    fn what_another_left_under_the_name_of_the_next_is_left_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.json");
        let (left, _) = begin(&file).unwrap();
        let number: u64 = left.to_str().unwrap().rsplit('.').nth(1).unwrap().parse().unwrap();
        let next = left.with_file_name(format!(".r.json.{}.{}.partial", process::id(), number + 1));
        fs::write(&next, "left").unwrap();
        write_text(&file, "{}");
        assert_eq!(
            (fs::read_to_string(&next).unwrap(), fs::read_to_string(&file).unwrap()),
            ("left".to_owned(), "{}".to_owned())
        );
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.json");
        for mode in [0o600, 0o640, 0o444, 0o6755] {
            fs::write(&file, "secret").unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            write_text(&file, "{}");
            let now = fs::metadata(&file).unwrap().mode();
            assert_eq!(now & 0o7777, mode & 0o777, "it runs as nobody but who starts it");
            fs::remove_file(&file).unwrap();
        }
    }

    #[test]
    fn a_file_that_is_replaced_stays_its_owners() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.json");
        fs::write(&file, "secret").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        // Root alone can give a file away.
        let (uid, gid) = if chown(&file, Some(1), Some(2)).is_ok() {
            (1, 2)
        } else {
            let own = fs::metadata(&file).unwrap();
            (own.uid(), own.gid())
        };
        write_text(&file, "{}");
        let now = fs::metadata(&file).unwrap();
        assert_eq!((now.uid(), now.gid(), now.mode() & 0o777), (uid, gid, 0o600));
    }

    #[test]
    fn what_cannot_be_filled_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.json");
        fs::write(&file, "old").unwrap();
        let told = write(&file, |_| Err(io::ErrorKind::StorageFull.into())).unwrap_err().to_string();
        assert!(told.contains("r.json: cannot write: "), "{told}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_to_a_file_that_is_not_there_yet_stays_a_link_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, second] =
            ["r.json", "link.json", "second.json"].map(|name| folder.path().join(name));
        symlink("r.json", &link).unwrap();
        symlink(&link, &second).unwrap();
        write_text(&second, "new");
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(link.is_symlink() && second.is_symlink());
    }

    #[test]
    fn what_only_a_directory_can_be_called_is_refused_before_the_run() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["new/", "new/.", "new/.."] {
            let link = folder.path().join("link");
            symlink(name, &link).unwrap();
            // A typed `new/.` is `new`.
            let typed = [folder.path().join(name)].into_iter().filter(|_| name != "new/.");
            for path in typed.chain([link.clone()]) {
                let told = check(&path).unwrap_err().to_string();
                assert!(told.ends_with(": cannot write: only a directory's path ends so"), "{told}");
            }
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn no_file_has_an_empty_name_and_none_that_is_read_is_replaced() {
        assert_eq!(
            check(Path::new("")).unwrap_err().to_string(),
            "cannot write: the name of a file is empty"
        );
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["r.json", "link.json"].map(|name| folder.path().join(name));
        fs::write(&file, "{}").unwrap();
        symlink(&file, &link).unwrap();
        let inputs = [link.as_path(), Path::new("/dev/stdin")];
        let spares = |path: &Path| check_spares(&[("--json", Some(path))], inputs.into_iter());
        let told = spares(&file).unwrap_err().to_string();
        assert!(told.ends_with("r.json: --json would replace a file that is read"), "{told}");
        assert!(spares(&folder.path().join("other")).is_ok() && spares(Path::new("/dev/stdin")).is_ok());
        let looked_at = inputs.into_iter().inspect(|path| panic!("no result is named: {}", path.display()));
        check_spares(&[("--json", None), ("--hlog", Some(Path::new("/dev/null")))], looked_at).unwrap();
    }

    #[test]
    fn what_a_descriptors_name_leads_to_is_written_at_its_end_and_the_name_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "text\n").unwrap();
        let open = File::open(&path).unwrap();
        let name = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
        write_text(&name, "{}\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "text\n{}\n");
        assert!(name.is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_stands_below_dev_is_a_device_and_no_other_is_made_there() {
        assert!(is_device(Path::new("/dev/stdout")) && !is_device(Path::new("/dev/shm/r.json")));
        let nowhere = Path::new("/dev/loadgen-is-not-there");
        let told = check(nowhere).unwrap_err().to_string();
        assert!(told.starts_with("/dev/loadgen-is-not-there: cannot write: No such file"), "{told}");
        assert!(write(nowhere, |_| Ok(())).is_err() && !nowhere.exists());
    }
}
