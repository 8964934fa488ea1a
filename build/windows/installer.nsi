; Installs Sallyport for one user, without an administrator (docs/windows.md).
; scripts/package gives VERSION, NUMBERS, WINDOW, CONSOLE, ICON, LICENSE and OUT.
Unicode true
SetCompressor /SOLID lzma
SetDateSave off
ManifestDPIAware true
RequestExecutionLevel user

!include "MUI2.nsh"
!include "x64.nsh"

!define KEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\io.sallyport.Sallyport"
!define CLASS "Software\Classes\sallyport"

Name "Sallyport"
OutFile "${OUT}"
InstallDir "$LOCALAPPDATA\Programs\Sallyport"
InstallDirRegKey HKCU "${KEY}" "InstallLocation"
ShowInstDetails show

VIProductVersion "${NUMBERS}.0"
VIAddVersionKey "ProductName" "Sallyport"
VIAddVersionKey "FileDescription" "Installs Sallyport"
VIAddVersionKey "CompanyName" "The Sallyport contributors"
VIAddVersionKey "LegalCopyright" "Apache License 2.0"
VIAddVersionKey "ProductVersion" "${VERSION}"
VIAddVersionKey "FileVersion" "${VERSION}"

!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!define MUI_FINISHPAGE_RUN "$INSTDIR\Sallyport.exe"
!insertmacro MUI_PAGE_LICENSE "${LICENSE}"
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

; A program that runs cannot be written to: then nothing is changed.
!macro FREE FILE
  ${If} ${FileExists} "${FILE}"
    ClearErrors
    FileOpen $0 "${FILE}" a
    ${If} ${Errors}
      MessageBox MB_OK|MB_ICONEXCLAMATION "Sallyport is running. Quit it (and stop the sidecar), then start this again. Nothing was changed." /SD IDOK
      SetErrorLevel 3
      Abort
    ${EndIf}
    FileClose $0
  ${EndIf}
!macroend

Function .onInit
  ${IfNot} ${RunningX64}
    MessageBox MB_OK|MB_ICONSTOP "Sallyport needs a 64-bit Windows." /SD IDOK
    SetErrorLevel 2
    Abort
  ${EndIf}
FunctionEnd

Section "Sallyport"
  SetShellVarContext current
  !insertmacro FREE "$INSTDIR\Sallyport.exe"
  !insertmacro FREE "$INSTDIR\bin\sallyport.exe"
  SetOutPath "$INSTDIR"
  File "/oname=Sallyport.exe" "${WINDOW}"
  File "/oname=LICENSE.txt" "${LICENSE}"
  SetOutPath "$INSTDIR\bin"
  File "/oname=sallyport.exe" "${CONSOLE}"
  SetOutPath "$INSTDIR"
  CreateShortcut "$SMPROGRAMS\Sallyport.lnk" "$INSTDIR\Sallyport.exe"

  WriteRegStr HKCU "${CLASS}" "" "URL:Sallyport"
  WriteRegStr HKCU "${CLASS}" "URL Protocol" ""
  WriteRegStr HKCU "${CLASS}\DefaultIcon" "" "$INSTDIR\Sallyport.exe,0"
  WriteRegStr HKCU "${CLASS}\shell\open\command" "" '"$INSTDIR\Sallyport.exe" "%1"'

  WriteUninstaller "$INSTDIR\uninstall.exe"
  WriteRegStr HKCU "${KEY}" "DisplayName" "Sallyport"
  WriteRegStr HKCU "${KEY}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${KEY}" "Publisher" "The Sallyport contributors"
  WriteRegStr HKCU "${KEY}" "DisplayIcon" "$INSTDIR\Sallyport.exe,0"
  WriteRegStr HKCU "${KEY}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${KEY}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${KEY}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${KEY}" "NoModify" 1
  WriteRegDWORD HKCU "${KEY}" "NoRepair" 1
SectionEnd

; What a person approved, installed and recorded stays: only what came from here goes.
Section "Uninstall"
  SetShellVarContext current
  !insertmacro FREE "$INSTDIR\Sallyport.exe"
  !insertmacro FREE "$INSTDIR\bin\sallyport.exe"
  Delete "$INSTDIR\Sallyport.exe"
  Delete "$INSTDIR\bin\sallyport.exe"
  Delete "$INSTDIR\LICENSE.txt"
  Delete "$SMPROGRAMS\Sallyport.lnk"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR\bin"
  RMDir "$INSTDIR"
  ReadRegStr $0 HKCU "${CLASS}\shell\open\command" ""
  ${If} $0 == '"$INSTDIR\Sallyport.exe" "%1"'
    DeleteRegKey HKCU "${CLASS}"
  ${EndIf}
  DeleteRegKey HKCU "${KEY}"
SectionEnd
