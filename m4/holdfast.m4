# HOLDFAST_CHECK_CFLAGS(VARIABLE, FLAG...)
# Appends each flag that the compiler takes without a warning to VARIABLE.
AC_DEFUN([HOLDFAST_CHECK_CFLAGS], [
    m4_foreach_w([flag], [$2], [
        AS_VAR_PUSHDEF([cached], [holdfast_cv_cflag_]flag)
        AC_CACHE_CHECK([whether $CC takes flag], [cached], [
            holdfast_saved_CFLAGS=$CFLAGS
            CFLAGS="$CFLAGS -Werror flag"
            AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
                [AS_VAR_SET([cached], [yes])], [AS_VAR_SET([cached], [no])])
            CFLAGS=$holdfast_saved_CFLAGS
        ])
        AS_VAR_IF([cached], [yes], [AS_VAR_APPEND([$1], [" flag"])])
        AS_VAR_POPDEF([cached])
    ])
])
