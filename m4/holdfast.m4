# HOLDFAST_CHECK_CFLAGS(VARIABLE, FLAGS)
# Appends each of the flags, separated by blanks, that the compiler takes without a warning.
AC_DEFUN([HOLDFAST_CHECK_CFLAGS], [
    for holdfast_flag in $2; do
        AC_MSG_CHECKING([whether $CC takes $holdfast_flag])
        holdfast_saved_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS -Werror $holdfast_flag"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [
            AC_MSG_RESULT([yes])
            AS_VAR_APPEND([$1], [" $holdfast_flag"])
        ], [AC_MSG_RESULT([no])])
        CFLAGS=$holdfast_saved_CFLAGS
    done
])
