/* inject.c - lets one system call of a writing path fail, for faults.py.

   usage: tp-inject FOLDER LOG [CALL KIND] -- COMMAND...

   Traces COMMAND and its children with ptrace, so that no write escapes: those
   of libc's own functions, of static programs and of inlined calls are seen as
   well. The calls that change something under FOLDER are counted, and the one
   of number CALL meets KIND:
     ENOSPC, EIO, EINTR, ENOMEM, EDQUOT, EROFS   it fails with this error
     short    a write takes half of what it is given
     full     from it on, nothing that needs room succeeds (ENOSPC)
     kill     all processes end before it, as by kill -9
   LOG gets a line for each call, separated by tabs: 'watched' or 'outside' (of
   FOLDER), 'fault' where it met KIND, the call's name and its paths. Calls that
   could write unseen are 'hole'. Exits as COMMAND, or with 128 + its signal. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a call is about: the arguments that say it, counted from 0; -1: none.
   A path without a folder is relative to the working directory. */
struct call {
  long number;
  const char *name;
  int file, folder, path, other_folder, other_path;
  int size;       /* the argument that `short` halves */
  int needs_room; /* fails where the disk is full */
};

#define FILE_CALL(NAME, ARGUMENT, SIZE, ROOM)                                  \
  {SYS_##NAME, #NAME, ARGUMENT, -1, -1, -1, -1, SIZE, ROOM}
#define PATH_CALL(NAME, PATH, OTHER, ROOM)                                     \
  {SYS_##NAME, #NAME, -1, -1, PATH, -1, OTHER, -1, ROOM}
#define AT_CALL(NAME, FOLDER, PATH, OTHER_FOLDER, OTHER, ROOM)                 \
  {SYS_##NAME, #NAME, -1, FOLDER, PATH, OTHER_FOLDER, OTHER, -1, ROOM}

/* clang-format off */
static const struct call calls[] = {
    PATH_CALL(open, 0, -1, 1),
    PATH_CALL(creat, 0, -1, 1),
    AT_CALL(openat, 0, 1, -1, -1, 1),
    AT_CALL(openat2, 0, 1, -1, -1, 1),
    FILE_CALL(write, 0, 2, 1),
    FILE_CALL(pwrite64, 0, 2, 1),
    FILE_CALL(writev, 0, 2, 1),
    FILE_CALL(pwritev, 0, 2, 1),
    FILE_CALL(pwritev2, 0, 2, 1),
    FILE_CALL(sendfile, 0, 3, 1),
    FILE_CALL(copy_file_range, 2, 4, 1),
    FILE_CALL(splice, 2, 4, 1),
    FILE_CALL(mmap, 4, -1, 0),
    FILE_CALL(ftruncate, 0, -1, 1),
    FILE_CALL(fallocate, 0, -1, 1),
    FILE_CALL(sync_file_range, 0, -1, 0),
    FILE_CALL(fsync, 0, -1, 0),
    FILE_CALL(fdatasync, 0, -1, 0),
    FILE_CALL(close, 0, -1, 0),
    FILE_CALL(fchmod, 0, -1, 0),
    FILE_CALL(fchown, 0, -1, 0),
    FILE_CALL(flock, 0, -1, 0),
    PATH_CALL(truncate, 0, -1, 0),
    PATH_CALL(chmod, 0, -1, 0),
    AT_CALL(fchmodat, 0, 1, -1, -1, 0),
    PATH_CALL(chown, 0, -1, 0),
    AT_CALL(fchownat, 0, 1, -1, -1, 0),
    PATH_CALL(mkdir, 0, -1, 1),
    AT_CALL(mkdirat, 0, 1, -1, -1, 1),
    PATH_CALL(mknod, 0, -1, 1),
    AT_CALL(mknodat, 0, 1, -1, -1, 1),
    PATH_CALL(rmdir, 0, -1, 0),
    PATH_CALL(unlink, 0, -1, 0),
    AT_CALL(unlinkat, 0, 1, -1, -1, 0),
    PATH_CALL(rename, 0, 1, 0),
    AT_CALL(renameat, 0, 1, 2, 3, 0),
    AT_CALL(renameat2, 0, 1, 2, 3, 0),
    PATH_CALL(link, 0, 1, 1),
    AT_CALL(linkat, 0, 1, 2, 3, 1),
    PATH_CALL(symlink, 1, -1, 1),
    AT_CALL(symlinkat, 1, 2, -1, -1, 1),
};
/* clang-format on */
enum { num_calls = sizeof(calls) / sizeof(calls[0]) };

/* With these, writes need no call that is listed. */
static const long holes[] = {SYS_io_uring_setup, SYS_io_submit, SYS_vmsplice,
                             SYS_tee, SYS_open_by_handle_at};
enum { num_holes = sizeof(holes) / sizeof(holes[0]) };

static const char *folder, *kind;
static FILE *log_file;
static long fault_call, seen;

static void die(const char *what) {
  fprintf(stderr, "tp-inject: %s: %s\n", what, strerror(errno));
  exit(125);
}

/* The listed calls stop for the tracer, all others run on. */
static void install_filter(void) {
  struct sock_filter code[2 * (num_calls + num_holes) + 2];
  int size = 0;
  code[size++] = (struct sock_filter)BPF_STMT(
      BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < num_calls + num_holes; ++i) {
    unsigned number = i < num_calls ? calls[i].number : holes[i - num_calls];
    code[size++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    code[size++] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
  }
  code[size++] =
      (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {size, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    die("seccomp");
}

static void read_text(pid_t pid, unsigned long address, char *text) {
  size_t size = 0;
  while (size < PATH_MAX - 1) {
    size_t page = 4096 - (address + size) % 4096;
    size_t part = page < PATH_MAX - 1 - size ? page : PATH_MAX - 1 - size;
    struct iovec own = {text + size, part},
                 its = {(void *)(address + size), part};
    ssize_t got = process_vm_readv(pid, &own, 1, &its, 1, 0);
    if (got <= 0)
      break;
    if (memchr(text + size, 0, got))
      return;
    size += got;
  }
  text[size] = 0;
}

static void read_link(pid_t pid, const char *what, int number, char *text) {
  char link[64];
  if (number >= 0)
    snprintf(link, sizeof(link), "/proc/%d/%s/%d", pid, what, number);
  else
    snprintf(link, sizeof(link), "/proc/%d/%s", pid, what);
  ssize_t size = readlink(link, text, PATH_MAX - 1);
  text[size < 0 ? 0 : size] = 0;
}

/* The path whose text is at `address`, with links in its folder resolved. An
   open file by its number, as linkat() has it for one that has no name, is that
   of its descriptor. */
static void read_path(pid_t pid, int at, unsigned long address, char *path) {
  char text[PATH_MAX], whole[2 * PATH_MAX + 2], resolved[PATH_MAX];
  read_text(pid, address, text);
  int file;
  if (sscanf(text, "/proc/self/fd/%d", &file) == 1) {
    read_link(pid, "fd", file, path);
    return;
  }
  if (text[0] == '/') {
    strcpy(whole, text);
  } else {
    if (at == AT_FDCWD)
      read_link(pid, "cwd", -1, whole);
    else
      read_link(pid, "fd", at, whole);
    strcat(strcat(whole, "/"), text);
  }
  size_t size = strlen(whole);
  while (size > 1 && whole[size - 1] == '/')
    whole[--size] = 0;
  char *name = strrchr(whole, '/');
  int is_plain = name && strcmp(name, "/.") && strcmp(name, "/..");
  if (is_plain)
    *name = 0;
  const char *known = realpath(*whole ? whole : "/", resolved);
  snprintf(path, PATH_MAX, "%s%s%s",
           known ? (strcmp(known, "/") ? known : "") : whole,
           is_plain ? "/" : "", is_plain ? name + 1 : "");
}

static int is_under(const char *path, const char *where) {
  size_t size = strlen(where);
  return strncmp(path, where, size) == 0 &&
         (path[size] == 0 || path[size] == '/');
}

static int opens_for_writing(pid_t pid, int file) {
  char name[64], line[256];
  snprintf(name, sizeof(name), "/proc/%d/fdinfo/%d", pid, file);
  FILE *info = fopen(name, "r");
  unsigned flags = 0;
  while (info && fgets(line, sizeof(line), info))
    if (sscanf(line, "flags: %o", &flags) == 1)
      break;
  if (info)
    fclose(info);
  return (flags & O_ACCMODE) != O_RDONLY;
}

/* The flags of an open call, with O_WRONLY where it creates. */
static int get_open_flags(pid_t pid, long number,
                          const unsigned long *arguments) {
  unsigned long how = 0;
  switch (number) {
  case SYS_open:
    return arguments[1];
  case SYS_openat:
    return arguments[2];
  case SYS_creat:
    return O_WRONLY | O_CREAT;
  case SYS_openat2: {
    struct iovec own = {&how, sizeof(how)},
                 its = {(void *)arguments[2], sizeof(how)};
    process_vm_readv(pid, &own, 1, &its, 1, 0);
    return how;
  }
  }
  return -1;
}

/* Whether the call changes something, or makes sure that it lasts. */
static int matters(pid_t pid, const struct call *call,
                   const unsigned long *arguments, int *is_open) {
  int flags = get_open_flags(pid, call->number, arguments);
  if (flags != -1) {
    *is_open = (flags & O_CREAT) ? 2 : 1;
    return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_DIRECTORY));
  }
  if (call->number == SYS_mmap)
    return (int)arguments[4] >= 0 && (arguments[2] & PROT_WRITE) &&
           (arguments[3] & MAP_TYPE) != MAP_PRIVATE;
  return 1;
}

static int find_error(const char *name) {
  static const struct {
    const char *name;
    int value;
  } errors[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EINTR", EINTR},
                {"ENOMEM", ENOMEM}, {"EDQUOT", EDQUOT}, {"EROFS", EROFS}};
  for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); ++i)
    if (!strcmp(name, errors[i].name))
      return errors[i].value;
  return 0;
}

/* A thread stops before a call. Gives the error that it is to have after it
   was made all the same, or 0. */
static int handle(pid_t pid, pid_t group) {
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, pid, 0, &registers) != 0)
    return 0;
  long number = registers.orig_rax;
  for (int i = 0; i < num_holes; ++i)
    if (holes[i] == number)
      fprintf(log_file, "hole\t%ld\n", number);
  const struct call *call = NULL;
  for (int i = 0; i < num_calls && !call; ++i)
    if (calls[i].number == number)
      call = &calls[i];
  if (!call)
    return 0;
  unsigned long arguments[] = {registers.rdi, registers.rsi, registers.rdx,
                               registers.r10, registers.r8,  registers.r9};
  int is_open = 0;
  if (!matters(pid, call, arguments, &is_open))
    return 0;
  char path[PATH_MAX] = "", other[PATH_MAX] = "";
  if (call->file >= 0)
    read_link(pid, "fd", arguments[call->file], path);
  else
    read_path(pid, call->folder >= 0 ? (int)arguments[call->folder] : AT_FDCWD,
              arguments[call->path], path);
  if (call->other_path >= 0)
    read_path(pid,
              call->other_folder >= 0 ? (int)arguments[call->other_folder]
                                      : AT_FDCWD,
              arguments[call->other_path], other);
  int is_watched =
      is_under(path, folder) || (*other && is_under(other, folder));
  if (is_watched && number == SYS_close &&
      !opens_for_writing(pid, arguments[0]))
    return 0;
  if (!is_watched) {
    /* Opening a folder elsewhere, or closing a file, changes nothing. Pipes,
       sockets and memory have no path. */
    int flags = get_open_flags(pid, number, arguments);
    int changes =
        number != SYS_close && number != SYS_fsync &&
        (flags == -1 || (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT));
    if (changes && path[0] == '/' && !is_under(path, "/dev") &&
        !is_under(path, "/proc") && strncmp(path, "/memfd:", 7))
      fprintf(log_file, "outside\t%s\t%s\n", call->name, path);
    return 0;
  }

  ++seen;
  int fault = seen == fault_call;
  int needs_room = call->needs_room && is_open != 1;
  if (fault_call && seen > fault_call && !strcmp(kind, "full"))
    fault = needs_room;
  fprintf(log_file, "%s\t%s\t%s%s%s\n", fault ? "fault" : "watched", call->name,
          path, *other ? "\t" : "", other);
  fflush(log_file);
  if (!fault)
    return 0;
  if (!strcmp(kind, "kill")) {
    kill(-group, SIGKILL);
    return 0;
  }
  if (!strcmp(kind, "short")) {
    unsigned long long *sizes[] = {NULL, NULL, &registers.rdx, &registers.r10,
                                   &registers.r8};
    if (call->size >= 0 && *sizes[call->size] > 1) {
      *sizes[call->size] /= 2;
      ptrace(PTRACE_SETREGS, pid, 0, &registers);
    }
    return 0;
  }
  int error =
      !strcmp(kind, "full") ? (needs_room ? ENOSPC : 0) : find_error(kind);
  if (!error)
    return 0;
  if (number == SYS_close) /* Linux has closed the file all the same. */
    return error;
  registers.orig_rax = -1;
  registers.rax = -error;
  ptrace(PTRACE_SETREGS, pid, 0, &registers);
  return 0;
}

int main(int argc, char **argv) {
  int split = 1;
  while (split < argc && strcmp(argv[split], "--"))
    ++split;
  if ((split != 3 && split != 5) || split + 1 >= argc) {
    fprintf(stderr, "usage: tp-inject FOLDER LOG [CALL KIND] -- COMMAND...\n");
    return 125;
  }
  folder = realpath(argv[1], NULL);
  log_file = fopen(argv[2], "we");
  if (!folder || !log_file)
    die(folder ? argv[2] : argv[1]);
  if (split == 5) {
    fault_call = atol(argv[3]);
    kind = argv[4];
    if (strcmp(kind, "short") && strcmp(kind, "full") && strcmp(kind, "kill") &&
        !find_error(kind)) {
      fprintf(stderr, "tp-inject: unknown kind '%s'\n", kind);
      return 125;
    }
  }

  pid_t child = fork();
  if (child < 0)
    die("fork");
  if (child == 0) {
    setpgid(0, 0);
    if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
      die("ptrace");
    raise(SIGSTOP);
    install_filter();
    execvp(argv[split + 1], argv + split + 1);
    die(argv[split + 1]);
  }
  int status, result = 125;
  if (waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
    die("the command");
  if (ptrace(PTRACE_SETOPTIONS, child, 0,
             PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACESECCOMP |
                 PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                 PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC) != 0)
    die("ptrace");
  ptrace(PTRACE_CONT, child, 0, 0);

  pid_t closing = 0; /* who is in a close that is to fail */
  int error = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0;) {
    if (!WIFSTOPPED(status)) {
      if (pid == child)
        result =
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      continue;
    }
    int signal = WSTOPSIG(status), next = PTRACE_CONT;
    if (status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8)) {
      int late = handle(pid, child);
      signal = 0;
      if (late) {
        closing = pid;
        error = late;
        next = PTRACE_SYSCALL;
      }
    } else if (signal == (SIGTRAP | 0x80)) {
      signal = 0;
      struct user_regs_struct registers;
      if (pid == closing && ptrace(PTRACE_GETREGS, pid, 0, &registers) == 0) {
        registers.rax = -error;
        ptrace(PTRACE_SETREGS, pid, 0, &registers);
        closing = 0;
      }
    } else if (status >> 16 || signal == SIGSTOP) {
      signal = 0; /* an event, or a new thread */
    }
    ptrace(next, pid, 0, signal);
  }
  if (fclose(log_file) != 0)
    die(argv[2]);
  return result;
}
