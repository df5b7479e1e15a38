# What `cmake --install` puts where, and the .deb that CPack makes of it (tools/release; docs/install.md).
include(GNUInstallDirs)

# Programs of the product; each finds its data in share/tessera beside its folder (hw/units/program_file.h).
set(TESSERA_PROGRAMS tessera tessera-lab)

# A build looks like an installation: its share/tessera is the checkout.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share)
file(RELATIVE_PATH TESSERA_CHECKOUT ${CMAKE_BINARY_DIR}/share ${CMAKE_SOURCE_DIR})
file(CREATE_LINK ${TESSERA_CHECKOUT} ${CMAKE_BINARY_DIR}/share/tessera SYMBOLIC)

foreach(program IN LISTS TESSERA_PROGRAMS)
  install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endforeach()

install(TARGETS tessera-simgrid LIBRARY DESTINATION ${TESSERA_MODULE_FOLDER})
install(DIRECTORY ${CMAKE_BINARY_DIR}/${TESSERA_MODULE_FOLDER}/stand-ins DESTINATION ${TESSERA_MODULE_FOLDER})

# Data, in the same folders as here.
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera)
install(FILES predictor/weights/tessera.pb DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera/predictor/weights)
install(FILES results/validation/neusight_published.csv DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera/results/validation)

# Where Debian's interpreters look; elsewhere PYTHONPATH names it.
install(DIRECTORY tools/python/tessera DESTINATION lib/python3/dist-packages PATTERN "__pycache__" EXCLUDE)

install(FILES LICENSE NOTICE THIRD_PARTY.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tessera)
install(FILES packaging/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tessera)

# The manual page and the completions are what the program prints of itself.
function(tessera_install_printed folder file)
  install(CODE "
    execute_process(COMMAND \"$<TARGET_FILE:tessera>\" ${ARGN} OUTPUT_FILE \"${CMAKE_BINARY_DIR}/printed/${file}\"
                    COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${CMAKE_BINARY_DIR}/printed/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
endfunction()
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/printed)
tessera_install_printed(man/man1 tessera.1 manual)
tessera_install_printed(bash-completion/completions tessera completion bash)
tessera_install_printed(zsh/vendor-completions _tessera completion zsh)
tessera_install_printed(fish/vendor_completions.d tessera.fish completion fish)

set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # a package needs the programs, not the tests

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tessera)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Simulate distributed training steps: time, memory, layouts")
set(CPACK_PACKAGE_CONTACT "The Tessera authors")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_PROVIDES "python3-tessera (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3, bash-completion")
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/packaging/debian/postinst
    ${CMAKE_SOURCE_DIR}/packaging/debian/prerm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
